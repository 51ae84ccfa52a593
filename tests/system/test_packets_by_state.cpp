// Every packet in every state of its queue pair, with the PSN that is expected, one before and one ahead: what is
// answered, and what is changed (InfiniBand specification 9.7.4.1, 9.8.2.2, 9.8.3, 10.3.1). RNIC_SEED=n replays a
// failure.
#include <optional>

#include "driver/umd/address_handle.hpp"
#include "model/bth.hpp"
#include "testbench/roce_frame.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using hw::QpState;

namespace {

constexpr std::uint32_t kPsn = 0x700, kMtu = 1024, kPeer = 0x00123456, kQkey = 0x1234;
constexpr std::size_t kTarget = 8192, kReceive = 65536;  // in the memory of host B
constexpr std::uint64_t kUntouchedWord = 0x0101'0101'0101'0101 * UnreliableSide::kUntouched;
constexpr std::uint8_t kAck = 0x11, kUc = 0x20, kUdSendOnly = 0x64, kUdSendOnlyImmediate = 0x65;
constexpr std::uint8_t kNakSequence = 0x60, kNakInvalid = 0x61;

bool is_response(std::uint8_t operation) { return operation >= 0x0d && operation <= 0x12; }
bool is_send(std::uint8_t operation) { return operation <= 5 || operation >= 0x16; }
bool is_read(std::uint8_t operation) { return operation == 0x0c; }
bool is_atomic(std::uint8_t operation) { return operation == 0x13 || operation == 0x14; }
/// It may be the first packet of a message.
bool begins(std::uint8_t operation) {
  return operation == 0 || operation == 4 || operation == 5 || operation == 6 || operation == 10 || operation == 11 ||
         operation == 0x17 || is_read(operation) || is_atomic(operation);
}
/// Another packet of its message must follow: the payload is a whole MTU.
bool is_open(std::uint8_t operation) {
  return operation == 0 || operation == 1 || operation == 6 || operation == 7 || operation == 0x0d || operation == 0x0e;
}

struct Answer {
  std::uint8_t opcode{}, syndrome{};
  std::uint32_t psn{};
};

struct Lab {
  Lab(World& of, Endpoint& end_a, Endpoint& end_b) : world(of), a(end_a), b(end_b) {
    atomic = must(b.process->create_mr({.address = b.memory,
                                        .length = UnreliableSide::kBytes,
                                        .local_write = true,
                                        .remote_read = true,
                                        .remote_write = true,
                                        .remote_atomic = true}));
    world.observe_frames([this](const model::FrameRecord& frame) {
      const auto packet = frame.from == 1 ? model::find_roce_packet(frame.bytes) : std::nullopt;
      if (!packet) return;
      constexpr std::size_t kBth = 14 + 20 + 8;
      const std::uint8_t syndrome = packet->opcode == kAck ? frame.bytes[kBth + 12] : std::uint8_t{0};
      answers.push_back({packet->opcode, syndrome, packet->psn});
    });
  }
  ~Lab() { world.observe_frames({}); }

  umd::QpConnection connection(QpType type) {
    if (type == QpType::kUd) return testbench::datagram_attributes(b.endpoint, kQkey, kMtu);
    auto c = testbench::connection_to(b.endpoint, a.endpoint, kPeer, {.mtu = kMtu, .ack_timeout = 0});
    c.receive_psn = c.send_psn = kPsn;
    return c;
  }

  /// A queue pair of host B in a state, with two Receives.
  std::shared_ptr<umd::QueuePair> open(QpType type, QpState state) {
    const umd::QueuePair::Spec spec{
        .send_cq = b.cq,
        .receive_cq = b.receive_cq,
        .type = type,
        .capacity = {
            .send_depth = 8, .receive_depth = 8, .send_segments = 4, .receive_segments = 4, .inline_bytes = 0}};
    if (state == QpState::kReset) return must(umd::QueuePair::create(b.process, spec));
    auto qp = must(umd::QueuePair::create_idle(b.process, spec));
    if (state == QpState::kInit) return qp;
    for (std::uint64_t id = 0; id < 2; ++id) b.post_receive(*qp, id, kReceive, 8192);
    const auto c = connection(type);
    must(qp->to_ready(c));
    if (state == QpState::kRtr) return qp;
    must(qp->to_connected(c));
    if (state == QpState::kSqd) must(qp->drain(false));
    if (state == QpState::kErr) must(qp->end());
    if (state == QpState::kSqe) break_send_queue(*qp);
    return qp;
  }

  /// 10.3.1.7: a request of an unreliable service that fails stops the send queue, and nothing else.
  void break_send_queue(umd::QueuePair& qp) {
    auto wrong = b.segment(0, 8);
    wrong.key ^= 1;
    umd::SendRequest request{.opcode = WqeOpcode::kSend, .id = 99, .segments = {&wrong, 1}};
    std::optional<umd::AddressHandle> to;
    if (qp.type() == QpType::kUd) {
      to = must(umd::AddressHandle::create(testbench::address_of(a.endpoint, false)));
      request.address = &*to;
      request.dest_qpn = kPeer;
      request.qkey = kQkey;
    }
    must(qp.post_send(request));
    CHECK(b.sent().status == CqeStatus::kLocProtErr);
  }

  roce::RoceFields frame(const umd::QueuePair& qp, std::uint8_t opcode, std::uint32_t psn) {
    auto f = packet_between(a.endpoint, b.endpoint, opcode, qp.qpn(), psn & roce::kPsnMask);
    const bool datagram = opcode >= kUdSendOnly;
    const auto operation = static_cast<std::uint8_t>(datagram ? opcode - kUdSendOnly + 4 : opcode & 0x1f);
    f.ack_req = !is_response(operation) && opcode < kUc;
    const std::size_t bytes = is_open(operation) ? kMtu : 16;
    if (datagram) roce::append_big(f.ext, kQkey, 4);
    if (datagram) roce::append_big(f.ext, kPeer, 4);
    if ((operation == 6 || operation == 10 || operation == 11) && !datagram)
      f.ext = roce::reth(b.at(kTarget), atomic->key(), static_cast<std::uint32_t>(is_open(operation) ? 2 * kMtu : 16));
    if (is_read(operation)) f.ext = roce::reth(b.at(kTarget), atomic->key(), 16);
    if (is_atomic(operation)) f.ext = roce::atomic_eth(b.at(kTarget), atomic->key(), 1, kUntouchedWord);
    if (is_response(operation) && operation != 0x0e) f.ext = roce::aeth(0x1f, 0);
    if (operation == 3 || operation == 5 || operation == 9 || operation == 11) roce::append_big(f.ext, 7, 4);
    if (operation == 0x16 || operation == 0x17) roce::append_big(f.ext, 0xdead, 4);
    if (operation == 0x12) f.payload.assign(8, 0xee);
    const bool carries =
        operation <= 11 || operation == 0x16 || operation == 0x17 || (operation >= 0x0d && operation <= 0x10);
    if (carries) f.payload.assign(bytes, 0xee);
    return f;
  }

  /// What host B sends because of the frame.
  std::vector<Answer> inject(const umd::QueuePair& qp, std::uint8_t opcode, std::uint32_t psn) {
    answers.clear();
    world.wire().inject(0, roce::roce_frame(frame(qp, opcode, psn)));
    a.endpoint.device().elapse(8'000);
    return answers;
  }

  /// Nothing of what was asked for has happened.
  void check_untouched() {
    CHECK(b.untouched(kTarget, 4096));
    CHECK(b.untouched(kReceive, 8192));
  }
  void restore() {
    std::memset(b.memory, UnreliableSide::kUntouched, UnreliableSide::kBytes);
    umd::Completion left;
    while (b.receive_cq->poll({&left, 1}) != 0 || b.cq->poll({&left, 1}) != 0) continue;
  }

  World& world;
  UnreliableSide a, b;
  std::unique_ptr<umd::KernelMr> atomic;
  std::vector<Answer> answers;
};

void with_lab(const std::string& name, const std::function<void(Lab&)>& body) {
  auto options = WorldOptions::from_environment("packets_" + name);
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    body(lab);
  });
}

std::vector<std::uint8_t> operations(QpType type) {
  std::vector<std::uint8_t> list;
  if (type == QpType::kUd) return {kUdSendOnly, kUdSendOnlyImmediate};
  const std::uint8_t end = type == QpType::kUc ? 12 : 24;
  for (std::uint8_t operation = 0; operation < end; ++operation)
    if (operation != 0x15) list.push_back(static_cast<std::uint8_t>(operation | (type == QpType::kUc ? kUc : 0)));
  return list;
}

}  // namespace

TEST_CASE("in RESET, INIT and ERR every packet is dropped, and nothing is answered (10.3.1.1, 10.3.1.2, 10.3.1.8)") {
  with_lab("dropped", [](Lab& lab) {
    for (const QpType type : {QpType::kRc, QpType::kUc, QpType::kUd}) {
      for (const QpState state : {QpState::kReset, QpState::kInit, QpState::kErr}) {
        const auto qp = lab.open(type, state);
        lab.a.endpoint.device().elapse(5'000);
        lab.restore();
        for (const std::uint8_t opcode : operations(type)) {
          INFO("type " << static_cast<int>(type) << ", state " << static_cast<int>(state) << ", opcode "
                       << static_cast<int>(opcode));
          CHECK(lab.inject(*qp, opcode, kPsn).empty());
          lab.check_untouched();
        }
        umd::Completion none;
        CHECK(lab.b.receive_cq->poll({&none, 1}) == 0);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("a response that answers nothing is dropped in RTR, RTS and SQD (9.7.5.1.1, 9.7.5.1.2)") {
  with_lab("stray", [](Lab& lab) {
    for (const QpState state : {QpState::kRtr, QpState::kRts, QpState::kSqd}) {
      const auto qp = lab.open(QpType::kRc, state);
      for (const std::uint8_t opcode : operations(QpType::kRc)) {
        if (!is_response(opcode)) continue;
        for (const std::uint32_t psn : {kPsn - 1, kPsn + 3}) {
          INFO("state " << static_cast<int>(state) << ", opcode " << static_cast<int>(opcode) << ", PSN " << psn);
          CHECK(lab.inject(*qp, opcode, psn).empty());
          CHECK(lab.b.quiet());
        }
      }
      // It is as good as new.
      CHECK(lab.inject(*qp, 0x0a, kPsn).size() == 1);
      must(qp->close());
      lab.restore();
    }
  });
}

TEST_CASE("requests of RC with the PSN that is expected, one before and one ahead, in RTR, RTS and SQD (9.7.4.1)") {
  with_lab("rc", [](Lab& lab) {
    for (const QpState state : {QpState::kRtr, QpState::kRts, QpState::kSqd}) {
      for (const std::uint8_t opcode : operations(QpType::kRc)) {
        if (is_response(opcode)) continue;
        for (const int offset : {0, -1, 2}) {
          INFO("state " << static_cast<int>(state) << ", opcode " << static_cast<int>(opcode) << ", PSN " << offset);
          const auto qp = lab.open(QpType::kRc, state);
          lab.restore();
          const auto answers = lab.inject(*qp, opcode, kPsn + static_cast<std::uint32_t>(offset));
          if (offset > 0) {  // 9.7.5.2.2
            REQUIRE(answers.size() == 1);
            CHECK(answers[0].syndrome == kNakSequence);
            CHECK(answers[0].psn == kPsn);
            lab.check_untouched();
          } else if (offset <
                     0) {  // 9.7.5.1.1, 9.7.5.1.3, 9.4.5: not executed again; an atomic that is not known is dropped
            for (const auto& answer : answers) CHECK(answer.syndrome >> 5 == 0);
            if (!is_read(opcode) && !is_atomic(opcode)) CHECK(answers.size() == 1);
            if (is_atomic(opcode)) CHECK(answers.empty());
            lab.check_untouched();
          } else if (!begins(opcode)) {  // 9.7.4.1.3
            REQUIRE(answers.size() == 1);
            CHECK(answers[0].syndrome == kNakInvalid);
            CHECK(answers[0].psn == kPsn);
            lab.check_untouched();
          } else if (opcode != 0x17) {
            REQUIRE(answers.size() == 1);
            CHECK(answers[0].opcode == (is_read(opcode) ? 0x10 : is_atomic(opcode) ? 0x12 : kAck));
            CHECK(answers[0].syndrome >> 5 == 0);
            CHECK(answers[0].psn == kPsn);
            CHECK(lab.b.untouched(kTarget, 4096) == (is_send(opcode) || is_read(opcode)));
          } else {  // 9.7.5.2.4: there is nothing to invalidate
            REQUIRE(answers.size() == 1);
            CHECK(answers[0].syndrome >> 5 == 3);
          }
          must(qp->close());
        }
      }
    }
  });
}

TEST_CASE("packets of UC with the PSN that is expected and another, in RTR, RTS, SQD and SQE (9.8.2.2)") {
  with_lab("uc", [](Lab& lab) {
    for (const QpState state : {QpState::kRtr, QpState::kRts, QpState::kSqd, QpState::kSqe}) {
      for (const std::uint8_t opcode : operations(QpType::kUc)) {
        for (const std::uint32_t psn : {kPsn, kPsn + 5}) {
          INFO("state " << static_cast<int>(state) << ", opcode " << static_cast<int>(opcode) << ", PSN " << psn);
          const auto qp = lab.open(QpType::kUc, state);
          lab.restore();
          CHECK(lab.inject(*qp, opcode, psn).empty());
          // Whatever PSN begins a message is taken (9.8.2.2.2), and one that has no beginning is not.
          const std::uint8_t operation = opcode & 0x1f;
          if (begins(operation)) {
            CHECK(lab.b.untouched(kTarget, 16) == is_send(operation));
            CHECK(lab.b.untouched(kReceive, 16) == !is_send(operation));
          } else {
            lab.check_untouched();
          }
          must(qp->close());
        }
      }
    }
  });
}

TEST_CASE("datagrams are taken in RTR, RTS, SQD and SQE (9.8.3, 10.3.1)") {
  with_lab("ud", [](Lab& lab) {
    for (const QpState state : {QpState::kRtr, QpState::kRts, QpState::kSqd, QpState::kSqe}) {
      for (const std::uint8_t opcode : operations(QpType::kUd)) {
        INFO("state " << static_cast<int>(state) << ", opcode " << static_cast<int>(opcode));
        const auto qp = lab.open(QpType::kUd, state);
        lab.restore();
        CHECK(lab.inject(*qp, opcode, kPsn + 9).empty());
        const auto got = lab.b.received();
        CHECK(got.status == CqeStatus::kSuccess);
        CHECK(got.with_immediate == (opcode == kUdSendOnlyImmediate));
        CHECK(got.byte_count == 40 + 16);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("a Receive that cannot be read completes with a fatal error, of every service (11.6.2)") {
  with_lab("unread", [](Lab& lab) {
    for (const QpType type : {QpType::kRc, QpType::kUc, QpType::kUd}) {
      INFO("type " << static_cast<int>(type));
      const auto qp = lab.open(type, QpState::kRts);
      lab.restore();
      lab.b.endpoint.host().root_complex().arm(
          {.fault = model::PcieFault::kCompleterAbort, .match = {.access = model::PcieAccess::kDmaRead}});
      const auto opcode = type == QpType::kRc ? 0x04 : type == QpType::kUc ? kUc | 0x04 : kUdSendOnly;
      lab.inject(*qp, static_cast<std::uint8_t>(opcode), kPsn);
      CHECK(lab.b.received().status == CqeStatus::kFatalErr);
      CHECK(lab.b.untouched(kReceive, 8192));
      must(qp->close());
    }
  });
}
