// UC queue pairs (InfiniBand specification volume 1, 9.8.2), and both unreliable services beside a reliable one.
// RNIC_SEED=n replays a failure.
#include <cstdio>
#include <map>

#include "driver/umd/memory_request.hpp"
#include "model/random.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using umd::SendRequest;

namespace {

/// A connected pair of UC queue pairs, one on each side.
struct UcPair {
  UcPair(Endpoint& endpoint_a, Endpoint& endpoint_b, std::uint32_t mtu = 1024)
      : a(endpoint_a), b(endpoint_b), from(a.add_qp(QpType::kUc)), to(b.add_qp(QpType::kUc)) {
    testbench::connect_pair(endpoint_a, from, endpoint_b, to, {.mtu = mtu});
  }
  SendRequest write(std::size_t remote, const umd::Segment& segment, std::uint64_t id, bool immediate = false) {
    return {.opcode = immediate ? WqeOpcode::kWriteImmediate : WqeOpcode::kWrite,
            .id = id,
            .segments = {&segment, 1},
            .remote_address = b.at(remote),
            .remote_key = b.region->key(),
            .immediate = static_cast<std::uint32_t>(id)};
  }
  SendRequest send(const umd::Segment& segment, std::uint64_t id, bool immediate = true) {
    return {.opcode = immediate ? WqeOpcode::kSendImmediate : WqeOpcode::kSend,
            .id = id,
            .segments = {&segment, 1},
            .immediate = static_cast<std::uint32_t>(id)};
  }
  UnreliableSide a, b;
  umd::QueuePair &from, &to;
};

}  // namespace

TEST_CASE(
    "UC moves SENDs and WRITEs of every length, completes them when they have left, and sends no answer (9.8.2)") {
  const auto options = WorldOptions::from_environment("unreliable");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UcPair p(endpoint_a, endpoint_b);
    const auto answers = world.wire().statistics(1).frames;
    model::Random random(options.seed, "uc");
    for (std::size_t i = 0; i < 32768; ++i) p.a.memory[i] = static_cast<std::uint8_t>(random.below(256));
    std::uint64_t id = 0;
    for (const std::size_t bytes : {0, 1, 1023, 1024, 1025, 2048, 5000, 16384}) {
      for (const bool immediate : {false, true}) {
        INFO(bytes << " bytes, immediate " << immediate);
        std::memset(p.b.memory, UnreliableSide::kUntouched, 65536);
        const auto segment = p.a.segment(7, bytes);
        p.b.post_receive(p.to, ++id, 3, 20000);
        must(p.from.post_send(p.send(segment, id, immediate)));
        CHECK(p.a.sent().status == CqeStatus::kSuccess);
        auto got = p.b.received();
        CHECK(got.status == CqeStatus::kSuccess);
        CHECK(got.id == id);
        CHECK(got.byte_count == bytes);
        CHECK(got.with_immediate == immediate);
        CHECK(!got.grh);
        CHECK(std::memcmp(p.b.memory + 3, p.a.memory + 7, bytes) == 0);
        if (immediate) p.b.post_receive(p.to, id, 0, 1);
        must(p.from.post_send(p.write(30001, segment, id, immediate)));
        CHECK(p.a.sent().status == CqeStatus::kSuccess);
        if (immediate) {
          got = p.b.received();
          CHECK(got.kind == umd::RequestKind::kReceiveWrite);
          CHECK(got.immediate == id);
        } else {
          endpoint_a.device().elapse(5000);
        }
        CHECK(std::memcmp(p.b.memory + 30001, p.a.memory + 7, bytes) == 0);
        CHECK(p.b.untouched(30001 + bytes, 100));
      }
    }
    CHECK(world.wire().statistics(1).frames == answers);
    CHECK(p.a.quiet());
    CHECK(p.b.quiet());
  });
}

TEST_CASE("a message that loses a packet vanishes, and its receive serves the next (9.8.2.2)") {
  const auto options = WorldOptions::from_environment("unreliable_loss");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UcPair p(endpoint_a, endpoint_b);
    const auto segment = p.a.segment(0, 4096);
    // First, Middle, Last of the first message are lost in turn; the second message is whole.
    for (const std::uint8_t lost : {0x20, 0x21, 0x23}) {
      INFO("lost opcode " << int{lost});
      world.wire().arm(0, {.fault = model::WireFault::kDrop, .match = {.opcode = lost}});
      const auto broken = p.b.counter(Counter::kRxBrokenMessages);
      p.b.post_receive(p.to, lost, 0, 8192);
      std::memset(p.a.memory, 1, 4096);
      must(p.from.post_send(p.send(segment, 1)));
      CHECK(p.a.sent().status == CqeStatus::kSuccess);
      endpoint_a.device().elapse(5000);
      std::memset(p.a.memory, 2, 4096);
      must(p.from.post_send(p.send(segment, 2)));
      CHECK(p.a.sent().status == CqeStatus::kSuccess);
      const auto got = p.b.received();
      CHECK(got.id == lost);
      CHECK(got.immediate == 2);
      CHECK(got.byte_count == 4096);
      CHECK(std::all_of(p.b.memory, p.b.memory + 4096, [](std::uint8_t byte) { return byte == 2; }));
      CHECK(p.b.counter(Counter::kRxBrokenMessages) == broken + 1);
      CHECK(p.b.quiet());
    }
  });
}

TEST_CASE(
    "a wrong key, a short receive and no receive drop a message of UC, and the queue pairs live on (9.9.3, class D)") {
  const auto options = WorldOptions::from_environment("unreliable_errors");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UcPair p(endpoint_a, endpoint_b);
    const auto segment = p.a.segment(0, 3000);
    std::memset(p.a.memory, 7, 4096);
    // No receive.
    must(p.from.post_send(p.send(segment, 1)));
    CHECK(p.a.sent().status == CqeStatus::kSuccess);
    endpoint_a.device().elapse(5000);
    CHECK(p.b.counter(Counter::kRxRnr) == 1);
    // Too long.
    p.b.post_receive(p.to, 11, 0, 2999);
    p.b.post_receive(p.to, 12, 10000, 4000);
    must(p.from.post_send(p.send(segment, 2)));
    CHECK(p.a.sent().status == CqeStatus::kSuccess);
    endpoint_a.device().elapse(5000);
    // A wrong key, with immediate data and without.
    for (const bool immediate : {false, true}) {
      auto bad = p.write(20000, segment, 3, immediate);
      bad.remote_key ^= 1;
      must(p.from.post_send(bad));
      CHECK(p.a.sent().status == CqeStatus::kSuccess);
      endpoint_a.device().elapse(5000);
    }
    // The range ends too early: no byte of the message is written.
    must(p.from.post_send(p.write(UnreliableSide::kBytes - 2999, segment, 4)));
    CHECK(p.a.sent().status == CqeStatus::kSuccess);
    endpoint_a.device().elapse(5000);
    CHECK(p.b.untouched(3000, UnreliableSide::kBytes - 3000));
    CHECK(p.b.quiet());
    // Both receives are still there.
    const auto fits = p.a.segment(0, 2999);
    must(p.from.post_send(p.send(fits, 5)));
    must(p.from.post_send(p.send(segment, 6)));
    auto got = p.b.received();
    CHECK(got.id == 11);
    CHECK(got.immediate == 5);
    got = p.b.received();
    CHECK(got.id == 12);
    CHECK(got.immediate == 6);
    CHECK(std::all_of(p.b.memory + 10000, p.b.memory + 13000, [](std::uint8_t byte) { return byte == 7; }));
    CHECK(must(p.to.kernel_qp().query()).state == static_cast<std::uint8_t>(hw::QpState::kRts));
  });
}

TEST_CASE("a key of our own that does not open fails the request or the receive") {
  const auto options = WorldOptions::from_environment("unreliable_local");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UcPair p(endpoint_a, endpoint_b);
    auto bad = p.b.segment(0, 4000);
    bad.key ^= 1;
    must(p.to.post_receive({.id = 1, .segments = {&bad, 1}}));
    const auto segment = p.a.segment(0, 2000);
    must(p.from.post_send(p.send(segment, 1)));
    CHECK(p.a.sent().status == CqeStatus::kSuccess);
    p.b.post_receive(p.to, 2, 0, 4000);
    CHECK(p.b.received().status == CqeStatus::kLocProtErr);
    CHECK(p.b.received().status == CqeStatus::kWrFlushErr);
    CHECK(must(p.to.kernel_qp().query()).state == static_cast<std::uint8_t>(hw::QpState::kErr));
    auto wrong = segment;
    wrong.key ^= 1;
    must(p.from.post_send(p.send(segment, 2)));
    must(p.from.post_send(p.send(wrong, 3)));
    CHECK(p.a.sent().status == CqeStatus::kSuccess);
    CHECK(p.a.sent().status == CqeStatus::kLocProtErr);
  });
}

TEST_CASE("what is posted in SQE is flushed, however much it is and however soon the host asks for RTS (10.3.1.6)") {
  const auto options = WorldOptions::from_environment("uc_sqe");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UcPair p(endpoint_a, endpoint_b);
    auto &a = p.a, &b = p.b;
    auto &left = p.from, &right = p.to;
    const auto good = a.segment(0, 2000);
    auto bad = good;
    bad.key ^= 1;
    const auto send = [&](const umd::Segment& segment, std::uint64_t id) {
      must(left.post_send({.opcode = WqeOpcode::kSend, .id = id, .segments = {&segment, 1}, .defer = true}));
    };
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t posted = 17 + 11 * round;
      send(bad, 0);
      left.ring_deferred();
      CHECK(a.sent().status == CqeStatus::kLocProtErr);
      CHECK(must(left.kernel_qp().query()).state == static_cast<std::uint8_t>(hw::QpState::kSqe));
      for (std::uint64_t id = 1; id <= posted; ++id) send(good, id);
      left.ring_deferred();
      must(left.resume());
      b.post_receive(right, 500 + round, 4096 * round, 4096);
      send(good, 100);
      left.ring_deferred();
      for (std::uint64_t id = 1; id <= posted; ++id) {
        const auto done = a.sent();
        CHECK(done.id == id);
        CHECK(done.status == CqeStatus::kWrFlushErr);
      }
      const auto done = a.sent();
      CHECK((done.id == 100 && done.status == CqeStatus::kSuccess));
      const auto got = b.received();
      CHECK((got.id == 500 + round && got.status == CqeStatus::kSuccess && got.byte_count == 2000));
      CHECK(b.quiet());
    }
  });
}

TEST_CASE("under a bad wire no message of UC is mixed with another") {
  auto options = WorldOptions::from_environment("unreliable_bad_wire");
  options.wire.faults[0].drop = 0.03;
  options.wire.faults[0].duplicate = 0.02;
  options.wire.faults[0].reorder = 0.03;
  options.wire.faults[0].corrupt = 0.01;
  auto& world = fresh_world(options);
  std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UcPair p(endpoint_a, endpoint_b, 256);
    model::Random random(options.seed, "messages");
    constexpr std::size_t kCount = 400, kSlot = 2048, kReceives = 64;
    for (std::size_t i = 0; i < kReceives; ++i) p.b.post_receive(p.to, i, i * kSlot, kSlot);
    std::size_t next_receive = kReceives, received = 0;
    const auto drain = [&](std::uint64_t wait) {
      for (umd::Completion got; p.b.poll(*p.b.receive_cq, got, wait);) {
        ++received;
        REQUIRE(got.status == CqeStatus::kSuccess);
        const auto tag = static_cast<std::uint8_t>(got.immediate);
        CHECK(got.byte_count == got.immediate >> 8);
        if (got.kind == umd::RequestKind::kReceive) {
          const auto* data = p.b.memory + got.id % kReceives * kSlot;
          CHECK(std::all_of(data, data + got.byte_count, [&](std::uint8_t byte) { return byte == tag; }));
        }
        p.b.post_receive(p.to, next_receive, next_receive % kReceives * kSlot, kSlot);
        ++next_receive;
      }
    };
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t bytes = random.below(kSlot), slot = i % 16 * kSlot;
      std::memset(p.a.memory + slot, static_cast<int>(i & 0xFF), bytes);
      const auto segment = p.a.segment(slot, bytes);
      auto request = i % 4 == 3 ? p.write(200000, segment, i, true) : p.send(segment, i);
      request.immediate = static_cast<std::uint32_t>(bytes << 8 | (i & 0xFF));
      must(p.from.post_send(request));
      if (i % 8 == 7) {
        for (int n = 0; n < 8; ++n) CHECK(p.a.sent().status == CqeStatus::kSuccess);
        drain(100);
      }
    }
    drain(50'000);
    std::printf("%zu of %zu messages came, %llu broken ones were dropped\n", received, kCount,
                static_cast<unsigned long long>(p.b.counter(Counter::kRxBrokenMessages)));
    CHECK(received > kCount / 2);
    CHECK(received < kCount);
    CHECK(p.b.counter(Counter::kRxBrokenMessages) > 10);
  });
}

TEST_CASE(
    "datagrams and WRITEs leave while atomics of the peer meet memory that fails: each is told its own (9.7.5.2, "
    "9.8.3)") {
  auto options = WorldOptions::from_environment("unreliable_beside_failures");
  options.host.root_complex.read_latency_ns = 10;  // one failure comes soon after another
  options.host.root_complex.jitter_ns = 50;
  auto& world = fresh_world(options);
  world.declare(testbench::Violation::kIommuFault);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr std::uint32_t kQkey = 77;
    constexpr std::size_t kRounds = 24, kAtomics = 16, kSenders = 3, kRequests = 60, kUnderWrites = 4096;
    UnreliableSide a(endpoint_a), b(endpoint_b, must(umd::ProcessContext::open(endpoint_b.kernel().kernel_node())));
    // A region of one page that nothing stands behind: requests pass the check of their key, and their reads fail.
    const auto registrar = must(umd::QueuePair::create_idle(
        b.process,
        {.send_cq = b.cq,
         .receive_cq = b.receive_cq,
         .capacity =
             {.send_depth = 64, .receive_depth = 4, .send_segments = 4, .receive_segments = 4, .inline_bytes = 64},
         .fast_register = true}));
    testbench::connect_pair(endpoint_a, a.add_qp(QpType::kRc), endpoint_b, *registrar, {});
    const auto region = must(b.process->create_fast_mr({.max_pages = 1, .remote_access = true}));
    const std::vector<std::uint64_t> nowhere{0x1000};
    must(umd::post_fast_register(
        *registrar, *region,
        {.pages = nowhere, .length = 4096, .base = 0x10000, .local_write = true, .remote_atomic = true}, {}));
    REQUIRE(b.sent().status == CqeStatus::kSuccess);

    // Datagrams of one queue pair or of two, in some rounds with WRITEs of a third, whose acknowledgements come
    // between.
    std::vector<umd::QueuePair*> senders;
    for (std::size_t i = 0; i + 1 < kSenders; ++i) senders.push_back(&b.add_datagram_qp(kQkey));
    senders.push_back(registrar.get());
    auto& to = a.add_datagram_qp(kQkey);
    const auto peer = umd::AddressHandle::create(testbench::address_of(endpoint_a, false)).take();
    const auto data = b.segment(0, 8);
    std::array<std::uint64_t, kSenders> posted{}, completed{};
    // The first `active` of them send so many each, and all are completed.
    const auto stream = [&](std::size_t active, std::size_t requests) {
      const auto before = posted;
      std::size_t left = active * requests;
      for (umd::Completion done; left > 0; endpoint_b.device().elapse(20)) {
        for (std::size_t i = 0; i < active; ++i) {
          while (posted[i] < before[i] + requests && senders[i]->has_room(1)) {
            SendRequest request{.opcode = WqeOpcode::kSend,
                                .id = i + kSenders * posted[i]++,
                                .segments = {&data, 1},
                                .inline_data = true};
            if (senders[i] == registrar.get()) {
              request.opcode = WqeOpcode::kWrite;
              request.remote_address = a.at(kUnderWrites);
              request.remote_key = a.region->key();
            } else {
              request.address = &peer;
              request.dest_qpn = to.qpn();
              request.qkey = kQkey;
            }
            must(senders[i]->post_send(request));
          }
        }
        // Who asks after a queue pair in the midst of it takes nothing away.
        for (std::size_t i = 0; i < active; ++i)
          CHECK(must(senders[i]->kernel_qp().query()).state == static_cast<std::uint8_t>(hw::QpState::kRts));
        for (; b.cq->poll({&done, 1}) != 0; --left) {
          CHECK(done.status == CqeStatus::kSuccess);
          CHECK(done.id / kSenders == completed[done.id % kSenders]++);
        }
      }
    };
    for (std::size_t round = 0; round < kRounds; ++round) {
      std::vector<std::shared_ptr<umd::QueuePair>> failing;
      for (std::size_t i = 0; i < kAtomics; ++i) {
        testbench::connect_pair(endpoint_a, a.add_qp(QpType::kRc), endpoint_b, b.add_qp(QpType::kRc), {});
        failing.push_back(a.qps.back());
      }
      stream(1 + round % kSenders, 4);
      for (std::size_t i = 0; i < kAtomics; ++i) {
        const auto result = a.segment(64 * i, 8);
        must(failing[i]->post_send({.opcode = WqeOpcode::kFetchAdd,
                                    .id = i,
                                    .segments = {&result, 1},
                                    .remote_address = 0x10000 + 8 * i,
                                    .remote_key = region->key(),
                                    .swap_add = 1}));
      }
      stream(1 + round % kSenders, kRequests);
      for (std::size_t i = 0; i < kAtomics; ++i) {
        CHECK(a.sent().status == CqeStatus::kRemOpErr);
        CHECK(a.untouched(64 * i, 64));
      }
      a.qps.resize(a.qps.size() - kAtomics);
      b.qps.resize(b.qps.size() - kAtomics);
    }
    CHECK(endpoint_b.host().iommu().fault_count() == kRounds * kAtomics);
  });
}

TEST_CASE("what leaves while the cable is out is lost, and what follows has the PSNs behind it (9.7.2, 9.8.2, 9.8.3)") {
  auto& world = fresh_world(WorldOptions::from_environment("unreliable_cable_out"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr std::uint32_t kQkey = 77;
    constexpr std::size_t kRoom = 4096, kRounds = 3;
    UcPair p(endpoint_a, endpoint_b);
    auto& datagrams = p.a.add_datagram_qp(kQkey);
    auto& to = p.b.add_datagram_qp(kQkey);
    auto &reliable = p.a.add_qp(QpType::kRc), &responder = p.b.add_qp(QpType::kRc);
    testbench::connect_pair(endpoint_a, reliable, endpoint_b, responder, {.ack_timeout = 8});
    const auto peer = umd::AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    const auto segment = p.a.segment(0, 1500);
    // One of each of the unreliable ones, which complete when they have left.
    const auto send = [&](std::uint64_t id) {
      must(p.from.post_send(p.send(segment, id)));
      must(datagrams.post_send({.opcode = WqeOpcode::kSendImmediate,
                                .id = id,
                                .segments = {&segment, 1},
                                .immediate = static_cast<std::uint32_t>(id),
                                .address = &peer,
                                .dest_qpn = to.qpn(),
                                .qkey = kQkey}));
      for (int i = 0; i < 2; ++i) CHECK(p.a.sent().status == CqeStatus::kSuccess);
    };
    const auto write = [&](std::uint64_t id) { must(reliable.post_send(p.write(id * kRoom, segment, id))); };
    for (std::uint64_t id = 1; id <= 2 * kRounds; ++id) {
      p.b.post_receive(p.to, id, id * kRoom, kRoom);
      p.b.post_receive(to, 100 + id, (10 + id) * kRoom, kRoom);
    }
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      world.wire().set_link(false);
      for (std::uint32_t i = 0; i < 3; ++i) send(1000 + i);
      write(20 + 2 * round);
      endpoint_a.device().elapse(20'000);
      world.wire().set_link(true);
      write(21 + 2 * round);  // its packets have the PSNs behind those that are lost
      send(round);
      for (int i = 0; i < 2; ++i) {
        const auto got = p.b.received();
        CHECK(got.status == CqeStatus::kSuccess);
        CHECK(got.immediate == round);
      }
      for (int i = 0; i < 2; ++i) CHECK(p.a.sent().status == CqeStatus::kSuccess);
    }
    CHECK(p.b.quiet());
  });
}
