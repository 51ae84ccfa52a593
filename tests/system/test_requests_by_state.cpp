// Every request of every service with every answer, and in every state in which it can be posted (InfiniBand
// specification 9.7.5, 9.9.2, 10.3.1, 11.6.2); every transition to RESET and ERR (10.3.1). RNIC_SEED=n replays a
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
constexpr std::array kAllTypes = {QpType::kRc, QpType::kUc, QpType::kUd};
constexpr std::array kRcRequests = {WqeOpcode::kSend,        WqeOpcode::kSendImmediate,  WqeOpcode::kSendInvalidate,
                                    WqeOpcode::kWrite,       WqeOpcode::kWriteImmediate, WqeOpcode::kRead,
                                    WqeOpcode::kCompareSwap, WqeOpcode::kFetchAdd};

bool reads(WqeOpcode opcode) { return opcode == WqeOpcode::kRead; }
bool changes(WqeOpcode opcode) { return opcode == WqeOpcode::kCompareSwap || opcode == WqeOpcode::kFetchAdd; }
std::vector<WqeOpcode> requests(QpType type) {
  std::vector<WqeOpcode> list(kRcRequests.begin(), kRcRequests.end());
  if (type == QpType::kUc) {
    list = {WqeOpcode::kSend, WqeOpcode::kSendImmediate, WqeOpcode::kWrite, WqeOpcode::kWriteImmediate};
  } else if (type == QpType::kUd) {
    list = {WqeOpcode::kSend, WqeOpcode::kSendImmediate};
  }
  return list;
}

/// A queue pair of host A whose peer is not there: what it says comes from the test.
struct Lab {
  Lab(World& of, Endpoint& end_a, Endpoint& end_b)
      : world(of), a(end_a), b(end_b), to(must(umd::AddressHandle::create(testbench::address_of(end_b, false)))) {}

  std::shared_ptr<umd::QueuePair> open(QpType type, QpState state, std::uint8_t ack_timeout = 0) {
    const umd::QueuePair::Spec spec{
        .send_cq = a.cq,
        .receive_cq = a.receive_cq,
        .type = type,
        .capacity = {
            .send_depth = 8, .receive_depth = 8, .send_segments = 4, .receive_segments = 4, .inline_bytes = 0}};
    if (state == QpState::kReset) return must(umd::QueuePair::create(a.process, spec));
    auto qp = must(umd::QueuePair::create_idle(a.process, spec));
    if (state == QpState::kInit) return qp;
    const auto c = connection(type, ack_timeout);
    must(qp->to_ready(c));
    if (state == QpState::kRtr) return qp;
    must(qp->to_connected(c));
    if (state == QpState::kSqd) must(qp->drain(false));
    if (state == QpState::kSqe || state == QpState::kErr) fail(*qp);
    return qp;
  }
  umd::QpConnection connection(QpType type, std::uint8_t ack_timeout = 0) {
    if (type == QpType::kUd) return testbench::datagram_attributes(a.endpoint, kQkey, kMtu);
    auto c = testbench::connection_to(a.endpoint, b.endpoint, kPeer,
                                      {.mtu = kMtu, .ack_timeout = ack_timeout, .retry_count = 1, .rnr_retry = 0});
    c.receive_psn = c.send_psn = kPsn;
    return c;
  }
  /// A request without the right to its memory: ERR on RC, SQE on UC and UD (10.3.1.7, 10.3.1.8). Nobody has polled
  /// yet.
  void fail(umd::QueuePair& qp) {
    post(qp, WqeOpcode::kSend, 1);
    pass(10'000);
  }
  /// `wrong` changes the local key.
  void post(umd::QueuePair& qp, WqeOpcode opcode, std::uint32_t wrong = 0) {
    auto segment = a.segment(0, 8);
    segment.key ^= wrong;
    umd::SendRequest request{.opcode = opcode,
                             .id = 1,
                             .segments = {&segment, 1},
                             .remote_address = b.at(64),
                             .remote_key = b.region->key()};
    if (qp.type() == QpType::kUd) {
      request.address = &to;
      request.dest_qpn = kPeer;
      request.qkey = kQkey;
    }
    must(qp.post_send(request));
  }
  /// From the peer.
  void answer(umd::QueuePair& qp, std::uint8_t opcode, roce::Bytes ext, std::size_t bytes = 0) {
    roce::RoceFields f;
    f.dest_mac = testbench::mac_of(a.endpoint);
    f.source_mac = testbench::mac_of(b.endpoint);
    f.source_ip = testbench::ip_of(b.endpoint, false);
    f.dest_ip = testbench::ip_of(a.endpoint, false);
    f.opcode = opcode;
    f.dest_qpn = qp.qpn();
    f.psn = kPsn;
    f.ext = std::move(ext);
    f.payload.assign(bytes, 0xee);
    world.wire().inject(1, roce::roce_frame(f));
  }
  void accept(umd::QueuePair& qp, WqeOpcode opcode) {
    if (reads(opcode)) return answer(qp, 0x10, roce::aeth(0x1f, 1), 8);
    if (changes(opcode)) return answer(qp, 0x12, roce::aeth(0x1f, 1), 8);
    answer(qp, 0x11, roce::aeth(0x1f, 1));
  }
  CqeStatus status() { return a.sent().status; }
  void pass(std::uint64_t ns) { a.endpoint.device().elapse(ns); }
  void forget() {
    umd::Completion left;
    while (a.receive_cq->poll({&left, 1}) != 0 || a.cq->poll({&left, 1}) != 0) continue;
  }

  World& world;
  UnreliableSide a, b;
  umd::AddressHandle to;
};

void with_lab(const std::string& name, const std::function<void(Lab&)>& body) {
  auto options = WorldOptions::from_environment("requests_" + name);
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    body(lab);
  });
}

}  // namespace

TEST_CASE("a request of RC ends as its answer says, whatever it asks for (9.7.5.2, 9.9.2, 11.6.2)") {
  struct Case {
    std::uint8_t syndrome;
    CqeStatus status;
  };
  constexpr std::array kCases = {Case{0x61, CqeStatus::kRemInvReqErr}, Case{0x62, CqeStatus::kRemAccessErr},
                                 Case{0x63, CqeStatus::kRemOpErr}, Case{0x21, CqeStatus::kRnrRetryExcErr}};
  with_lab("answers", [&](Lab& lab) {
    for (const WqeOpcode opcode : kRcRequests) {
      for (const auto& [syndrome, status] : kCases) {
        INFO("request " << static_cast<int>(opcode) << ", syndrome " << static_cast<int>(syndrome));
        const auto qp = lab.open(QpType::kRc, QpState::kRts);
        lab.post(*qp, opcode);
        lab.post(*qp, opcode);
        lab.pass(5'000);
        lab.answer(*qp, 0x11, roce::aeth(syndrome, 0));
        CHECK(lab.status() == status);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("a request of RC without an answer, or with a wrong one (9.7.6.1.3, 9.9.2.4)") {
  with_lab("no_answer", [](Lab& lab) {
    for (const WqeOpcode opcode : kRcRequests) {
      INFO("request " << static_cast<int>(opcode));
      auto qp = lab.open(QpType::kRc, QpState::kRts, 1);
      lab.post(*qp, opcode);
      CHECK(lab.status() == CqeStatus::kRetryExcErr);
      must(qp->close());
      if (!reads(opcode) && !changes(opcode)) continue;
      qp = lab.open(QpType::kRc, QpState::kRts);
      lab.post(*qp, opcode);
      lab.pass(5'000);
      if (reads(opcode)) {
        lab.answer(*qp, 0x10, roce::aeth(0x1f, 1), 12);  // longer than what was asked for
      } else {
        lab.answer(*qp, 0x10, roce::aeth(0x1f, 1), 8);  // of a Read
      }
      CHECK(lab.status() == CqeStatus::kBadRespErr);
      must(qp->close());
    }
  });
}

TEST_CASE("memory that may not be used, and requests behind it, of every service (10.3.1.7, 10.3.1.8, 11.6.2)") {
  with_lab("own_fault", [](Lab& lab) {
    for (const QpType type : kAllTypes) {
      for (const WqeOpcode opcode : requests(type)) {
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        auto qp = lab.open(type, QpState::kRts);
        lab.post(*qp, opcode, 1);
        lab.post(*qp, opcode);
        // A Read places nothing before its answer is there, and then only finds what it may not write (9.9.2.4).
        lab.pass(5'000);
        if (reads(opcode) || changes(opcode)) lab.accept(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kLocProtErr);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
        // Where the queue has stopped before.
        qp = lab.open(type, type == QpType::kRc ? QpState::kErr : QpState::kSqe);
        lab.post(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kLocProtErr);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("what is posted in SQD begins when the queue pair goes on (10.3.1.5)") {
  with_lab("drained", [](Lab& lab) {
    for (const QpType type : kAllTypes) {
      for (const WqeOpcode opcode : requests(type)) {
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        const auto qp = lab.open(type, QpState::kSqd);
        const auto frames = lab.world.wire().statistics(0).frames;
        lab.post(*qp, opcode);
        lab.pass(5'000);
        CHECK(lab.world.wire().statistics(0).frames == frames);
        must(qp->resume());
        lab.pass(5'000);
        CHECK(lab.world.wire().statistics(0).frames == frames + 1);
        if (type == QpType::kRc) lab.accept(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kSuccess);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("a Read or an atomic that was started before SQD ends in it (10.3.1.5)") {
  with_lab("ends_in_sqd", [](Lab& lab) {
    for (const WqeOpcode opcode : {WqeOpcode::kRead, WqeOpcode::kFetchAdd}) {
      const auto qp = lab.open(QpType::kRc, QpState::kRts);
      lab.post(*qp, opcode);
      lab.pass(5'000);
      must(qp->drain(false));
      lab.accept(*qp, opcode);
      CHECK(lab.status() == CqeStatus::kSuccess);
      must(qp->close());
    }
  });
}

TEST_CASE("a request that cannot be read completes with a fatal error, of every service (11.6.2)") {
  with_lab("unread", [](Lab& lab) {
    for (const QpType type : kAllTypes) {
      for (const WqeOpcode opcode : requests(type)) {
        if (reads(opcode) || changes(opcode)) continue;
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        const auto qp = lab.open(type, QpState::kRts);
        lab.a.endpoint.host().root_complex().arm(
            {.fault = model::PcieFault::kCompleterAbort,
             .match = {.access = model::PcieAccess::kDmaRead, .address = lab.a.at(0), .bytes = 8}});
        lab.post(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kFatalErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("from every state to RESET and to ERR, and the others that go nowhere else (10.3.1)") {
  with_lab("transitions", [](Lab& lab) {
    for (const QpType type : kAllTypes) {
      for (const QpState from : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts, QpState::kSqd,
                                 QpState::kSqe, QpState::kErr}) {
        if (from == QpState::kSqe && type == QpType::kRc) continue;
        for (const QpState next : {QpState::kReset, QpState::kErr, from}) {
          if (next == from && (from == QpState::kRtr || from == QpState::kSqe)) continue;
          INFO("type " << static_cast<int>(type) << ", from " << static_cast<int>(from) << " to "
                       << static_cast<int>(next));
          const auto qp = lab.open(type, from == QpState::kErr ? QpState::kRts : from);
          auto& kernel = qp->kernel_qp();
          if (from == QpState::kErr) must(kernel.to_error());
          must(kernel.modify(next, {}, lab.connection(type)));
          CHECK(must(kernel.query()).state == static_cast<std::uint8_t>(next));
          if (from == QpState::kSqd && next == QpState::kSqd) must(kernel.resume());
          lab.forget();
          must(qp->close());
        }
      }
    }
  });
}
