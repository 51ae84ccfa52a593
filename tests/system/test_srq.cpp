// Shared receive queues through the driver and over the wire: InfiniBand specification volume 1, 10.2.9
// (SRQ), 9.7.5.2.8 (RNR NAK), 10.3.1 (error state), 11.6.3.1 to 11.6.3.3 (last WQE reached, limit, catastrophic error);
// section 11 of NetworkDirect version 2.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <random>

#include "driver/nd2/completion_queue.hpp"
#include "driver/nd2/shared_receive_queue.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using model::WireFault;

namespace {

constexpr ULONG kRights = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
constexpr std::size_t kSlot = 4096, kSlots = 128;
constexpr std::uint8_t kSendLast = 2;

/// Queue pairs from A to B; all those of B share one receive queue.
struct Lab {
  Lab(World& of, Endpoint& end_a, Endpoint& end_b, std::size_t count, ULONG depth, ULONG threshold = 0)
      : world(of), a(end_a), b(end_b) {
    require_ok(b.adapter().CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, b.file(), depth, 2, threshold, 0, 0,
                                                    srq.put()));
    cq = b.create_cq(kSlots);
    ConnectParameters connection{512};
    connection.rnr_retry = 7;  // decisions 13: a peer on an SRQ is waited for
    connection.min_rnr_timer = 1;
    for (std::size_t i = 0; i < count; ++i) {
      auto& end = ends.emplace_back();
      end.cq_a = a.create_cq(64);
      end.a = a.create_qp(*end.cq_a, *end.cq_a, {4, 32, 1, 2, 0, nullptr});
      require_ok(b.adapter().CreateQueuePairWithSrq(IID_IND2QueuePair, cq.get(), cq.get(), srq.get(),
                                                    reinterpret_cast<void*>(i), 8, 1, 0, end.b.put()));
      testbench::connect_pair(a, *end.a, b, *end.b, connection);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      Endpoint& host = i == 0 ? a : b;
      memory[i] = static_cast<std::uint8_t*>(host.host().memory().allocate(kSlots * kSlot));
      region[i] = host.register_memory(memory[i], kSlots * kSlot, kRights);
    }
  }
  static void require_ok(HRESULT status) { REQUIRE(status == ND_SUCCESS); }
  [[nodiscard]] std::uint8_t* sent(std::size_t slot) const { return memory[0] + slot * kSlot; }
  [[nodiscard]] std::uint8_t* received(std::size_t slot) const { return memory[1] + slot * kSlot; }

  HRESULT receive(std::size_t slot, ULONG bytes = kSlot) {
    const ND2_SGE sge{received(slot), bytes, region[1]->GetLocalToken()};
    return srq->Receive(reinterpret_cast<void*>(slot), &sge, 1);
  }
  void send(std::size_t qp, std::size_t slot, std::size_t bytes) {
    const ND2_SGE sge{sent(slot), static_cast<ULONG>(bytes), region[0]->GetLocalToken()};
    REQUIRE(ends[qp].a->Send(reinterpret_cast<void*>(slot), &sge, 1, 0) == ND_SUCCESS);
  }
  HRESULT send_result(std::size_t qp, std::uint64_t limit_ns = 5'000'000) {
    ND2_RESULT result{};
    REQUIRE(take_result(a, *ends[qp].cq_a, result, limit_ns));
    return result.Status;
  }
  ND2_RESULT receive_result(std::uint64_t limit_ns = 5'000'000) {
    ND2_RESULT result{};
    REQUIRE(take_result(b, *cq, result, limit_ns));
    return result;
  }
  [[nodiscard]] umd::SharedReceiveQueue& core() const { return *static_cast<nd2::SharedReceiveQueue&>(*srq).core(); }
  [[nodiscard]] umd::QueuePair& core_b(std::size_t qp) { return testbench::core_of(*ends[qp].b); }
  void wait(std::uint64_t ns) { b.device().elapse(ns); }
  std::uint64_t count(hw::Counter counter) { return b.kernel().counter(counter).take(); }

  struct End {
    ComPtr<IND2CompletionQueue> cq_a;
    ComPtr<IND2QueuePair> a, b;
  };
  World& world;
  Endpoint& a;
  Endpoint& b;
  ComPtr<IND2SharedReceiveQueue> srq;
  ComPtr<IND2CompletionQueue> cq;
  std::deque<End> ends;
  std::uint8_t* memory[2];
  ComPtr<IND2MemoryRegion> region[2];
};

void experiment(const std::string& name, const std::function<void(World&, Endpoint&, Endpoint&)>& body,
                double loss = 0) {
  auto options = WorldOptions::from_environment("srq_" + name);
  options.wire.delay_ns = 1000;
  for (auto& faults : options.wire.faults) faults.drop = faults.duplicate = faults.reorder = loss;
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) { body(world, a, b); });
}

}  // namespace

TEST_CASE("eight queue pairs share one SRQ under loss: no receive is lost, none is used twice (10.2.9)") {
  experiment(
      "share",
      [](World& world, Endpoint& a, Endpoint& b) {
        constexpr std::size_t kQps = 8, kMessages = 40, kDepth = 24;
        Lab lab(world, a, b, kQps, kDepth);
        std::mt19937 rng(static_cast<unsigned>(a.device().random64()));
        std::array<std::uint32_t, kQps> next{}, seen{}, finished{};
        std::array<std::uint32_t, kQps> outstanding{};
        std::deque<std::size_t> free_slots;
        for (std::size_t slot = 0; slot < kDepth; ++slot) REQUIRE(lab.receive(slot) == ND_SUCCESS);
        CHECK(lab.receive(99) == ND_NO_MORE_ENTRIES);
        std::size_t total = 0;
        for (int idle = 0; total < kQps * kMessages ||
                           std::any_of(outstanding.begin(), outstanding.end(), [](auto n) { return n != 0; });) {
          bool moved = false;
          for (std::size_t qp = 0; qp < kQps; ++qp) {
            if (next[qp] < kMessages && outstanding[qp] < 4) {
              // Who, which, and a pattern; up to five packets.
              const std::size_t slot = qp * 4 + next[qp] % 4, bytes = 8 + rng() % 2500;
              const std::uint32_t head[] = {static_cast<std::uint32_t>(qp), next[qp]};
              for (std::size_t k = 0; k < bytes; ++k)
                lab.sent(slot)[k] = static_cast<std::uint8_t>(k * 3 + qp * 17 + next[qp]);
              std::memcpy(lab.sent(slot), head, sizeof head);
              lab.send(qp, slot, bytes);
              ++next[qp], ++outstanding[qp];
              moved = true;
            }
            ND2_RESULT result{};
            if (lab.ends[qp].cq_a->GetResults(&result, 1) == 1) {
              REQUIRE(result.Status == ND_SUCCESS);
              --outstanding[qp], ++finished[qp];
              moved = true;
            }
          }
          ND2_RESULT results[4];
          const std::size_t got = lab.cq->GetResults(results, 4);
          for (std::size_t i = 0; i < got; ++i) {
            REQUIRE(results[i].Status == ND_SUCCESS);
            const auto qp = reinterpret_cast<std::size_t>(results[i].QueuePairContext);
            const auto slot = reinterpret_cast<std::size_t>(results[i].RequestContext);
            std::uint32_t head[2];
            std::memcpy(head, lab.received(slot), sizeof head);
            REQUIRE(head[0] == qp);
            REQUIRE(head[1] == seen[qp]++);  // each sender's messages in their order
            for (std::size_t k = 8; k < results[i].BytesTransferred; ++k)
              REQUIRE(lab.received(slot)[k] == static_cast<std::uint8_t>(k * 3 + qp * 17 + head[1]));
            free_slots.push_back(slot);
            ++total;
            moved = true;
          }
          // Given back late and in any order, so that the queue is empty now and then.
          while (free_slots.size() > 20 || (!free_slots.empty() && idle > 20)) {
            const std::size_t pick = rng() % free_slots.size();
            REQUIRE(lab.receive(free_slots[pick]) == ND_SUCCESS);
            free_slots.erase(free_slots.begin() + static_cast<long>(pick));
            moved = true;
          }
          idle = moved ? 0 : idle + 1;
          lab.wait(500);
        }
        for (std::size_t qp = 0; qp < kQps; ++qp) CHECK((seen[qp] == kMessages && finished[qp] == kMessages));
        for (const auto slot : free_slots) REQUIRE(lab.receive(slot) == ND_SUCCESS);
        CHECK(lab.core().outstanding() == kDepth);
        const auto state = lab.core().kernel_srq().query().take();
        CHECK(static_cast<std::uint16_t>(state.producer_index - state.head) ==
              kDepth);  // taken: those of the messages, no other
        CHECK(state.head == kQps * kMessages);
        CHECK(lab.count(hw::Counter::kRxRnr) > 0);
        CHECK(lab.count(hw::Counter::kRxDuplicate) > 0);
      },
      0.02);
}

TEST_CASE("an empty SRQ answers RNR NAK for as long as it takes (9.7.5.2.8; decisions 13)") {
  experiment("empty", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 2, 8);
    lab.send(0, 0, 700);
    lab.wait(3'000'000);
    CHECK(lab.count(hw::Counter::kRxRnr) > 20);
    REQUIRE(lab.receive(5) == ND_SUCCESS);
    CHECK(lab.send_result(0) == ND_SUCCESS);
    const auto result = lab.receive_result();
    CHECK(result.BytesTransferred == 700);
    CHECK(reinterpret_cast<std::size_t>(result.RequestContext) == 5);
  });
}

TEST_CASE("the limit event comes once, when fewer receives are left than the threshold (11.6.3.2)") {
  experiment("limit", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 2, 16, 4);
    for (std::size_t i = 0; i < 8; ++i) REQUIRE(lab.receive(i) == ND_SUCCESS);
    OVERLAPPED notify = b.open_event();
    REQUIRE(lab.srq->Notify(&notify) == ND_PENDING);
    for (std::size_t i = 0; i < 4; ++i) lab.send(i % 2, i, 64);
    for (std::size_t i = 0; i < 4; ++i) lab.receive_result();
    lab.wait(50'000);
    b.take_events();
    CHECK(lab.srq->GetOverlappedResult(&notify, FALSE) == ND_PENDING);  // four are left: not fewer
    lab.send(0, 4, 64);
    CHECK(lab.srq->GetOverlappedResult(&notify, TRUE) == ND_SUCCESS);
    lab.receive_result();
    CHECK(lab.core().kernel_srq().query().take().limit == 0);  // disarmed
    lab.send(1, 5, 64);
    lab.receive_result();
    lab.wait(50'000);
    CHECK(b.take_events() == 0);
    // Already below: at once, as NDK says. Another threshold: not yet.
    REQUIRE(lab.srq->Notify(&notify) == ND_PENDING);
    CHECK(lab.srq->GetOverlappedResult(&notify, TRUE) == ND_SUCCESS);
    REQUIRE(lab.srq->Modify(0, 2) == ND_SUCCESS);
    REQUIRE(lab.srq->Notify(&notify) == ND_PENDING);
    lab.wait(50'000);
    b.take_events();
    CHECK(lab.srq->GetOverlappedResult(&notify, FALSE) == ND_PENDING);
    REQUIRE(lab.srq->Modify(0, 3) == ND_SUCCESS);  // while it is pending
    CHECK(lab.srq->GetOverlappedResult(&notify, TRUE) == ND_SUCCESS);
    Endpoint::close_event(notify);
  });
}

TEST_CASE(
    "a failed queue pair gives back the one receive it had taken, and no other; then it says it was the last (10.3.1, "
    "11.6.3.1)") {
  experiment("last", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 3, 8);
    for (std::size_t i = 0; i < 6; ++i) REQUIRE(lab.receive(10 + i) == ND_SUCCESS);
    // The last packets never arrive: the message stays under way at B.
    model::WireRule rule;
    rule.fault = WireFault::kDrop;
    rule.match.opcode = kSendLast;
    rule.match.dest_qpn = lab.core_b(1).qpn();
    rule.count = ~std::uint64_t{0} >> 1;
    world.wire().arm(0, rule);
    lab.send(1, 0, 1200);
    lab.wait(100'000);
    CHECK(lab.core().kernel_srq().query().take().head == 1);
    CHECK(!lab.core_b(1).last_wqe_reached());
    REQUIRE(lab.ends[1].b->Flush() == ND_SUCCESS);
    const auto canceled = lab.receive_result();
    CHECK(canceled.Status == ND_CANCELED);
    CHECK(reinterpret_cast<std::size_t>(canceled.QueuePairContext) == 1);
    CHECK(reinterpret_cast<std::size_t>(canceled.RequestContext) == 10);
    CHECK(b.wait_until([&] { return lab.core_b(1).last_wqe_reached(); }, 1'000'000));
    // The others go on with what is left.
    CHECK(lab.core().outstanding() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      lab.send(i % 2 == 0 ? 0 : 2, i, 900);
      const auto result = lab.receive_result();
      CHECK(result.Status == ND_SUCCESS);
      CHECK(reinterpret_cast<std::size_t>(result.RequestContext) == 11 + i);
    }
    CHECK(lab.core().outstanding() == 0);
    ND2_RESULT none{};
    CHECK(lab.cq->GetResults(&none, 1) == 0);
    // A queue pair that has taken nothing says so too.
    REQUIRE(lab.ends[0].b->Flush() == ND_SUCCESS);
    CHECK(b.wait_until([&] { return lab.core_b(0).last_wqe_reached(); }, 1'000'000));
    CHECK(lab.cq->GetResults(&none, 1) == 0);
  });
}

TEST_CASE("a Send that is too long fails its queue pair; the SRQ goes on for the others (section 11)") {
  experiment("too_long", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 2, 8);
    for (std::size_t i = 0; i < 4; ++i) REQUIRE(lab.receive(i, 1000) == ND_SUCCESS);
    lab.send(0, 0, 1400);
    CHECK(lab.send_result(0) == ND_DATA_OVERRUN);
    auto result = lab.receive_result();
    CHECK(result.Status == ND_BUFFER_OVERFLOW);
    CHECK(reinterpret_cast<std::size_t>(result.RequestContext) == 0);
    CHECK(b.wait_until([&] { return lab.core_b(0).last_wqe_reached(); }, 1'000'000));
    lab.send(1, 1, 1000);
    CHECK(lab.send_result(1) == ND_SUCCESS);
    result = lab.receive_result();
    CHECK(result.Status == ND_SUCCESS);
    CHECK(reinterpret_cast<std::size_t>(result.RequestContext) == 1);
    CHECK(lab.core().outstanding() == 2);
  });
}

TEST_CASE("an SRQ is not destroyed while a queue pair uses it; other processes can't ring for it (10.2.9.3)") {
  experiment("rights", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 1, 8);
    auto& kernel_srq = lab.core().kernel_srq();
    CHECK(kernel_srq.destroy().error() == Error::kBusy);
    {
      auto stranger = umd::ProcessContext::open(b.kernel().node()).take();
      stranger->ring(hw::uar::kSrqDoorbell, hw::SrqDoorbell{.srqn = lab.core().srqn(), .producer_index = 5}.word());
      lab.wait(10'000);
      CHECK(kernel_srq.query().take().producer_index == 0);
      CHECK(lab.count(hw::Counter::kDoorbellsRefused) == 1);
      // Beyond the ring: refused as well, whoever rings.
      lab.core().process()->ring(hw::uar::kSrqDoorbell,
                                 hw::SrqDoorbell{.srqn = lab.core().srqn(), .producer_index = 9}.word());
      lab.wait(10'000);
      CHECK(kernel_srq.query().take().producer_index == 0);
      CHECK(lab.count(hw::Counter::kDoorbellsRefused) == 2);
    }
    REQUIRE(lab.receive(0) == ND_SUCCESS);
    lab.send(0, 0, 10);
    CHECK(lab.receive_result().Status == ND_SUCCESS);
    lab.ends.clear();
    CHECK(kernel_srq.destroy().ok());
  });
}

TEST_CASE("a request that was rung for and never written fails the SRQ, and whoever needs it (11.6.3.3)") {
  experiment("lost", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 2, 8);
    REQUIRE(lab.receive(0) == ND_SUCCESS);
    OVERLAPPED notify = b.open_event();
    REQUIRE(lab.srq->Notify(&notify) == ND_PENDING);
    lab.core().process()->ring(hw::uar::kSrqDoorbell,
                               hw::SrqDoorbell{.srqn = lab.core().srqn(), .producer_index = 3}.word());
    lab.send(0, 0, 100);
    CHECK(lab.send_result(0) == ND_SUCCESS);
    lab.send(0, 1, 100);
    CHECK(lab.send_result(0) == ND_REMOTE_ERROR);
    CHECK(lab.srq->GetOverlappedResult(&notify, TRUE) == ND_INTERNAL_ERROR);
    CHECK(lab.core().kernel_srq().query().take().error == 1);
    CHECK(lab.srq->Notify(&notify) == ND_INTERNAL_ERROR);
    lab.send(1, 2, 100);
    CHECK(lab.send_result(1) == ND_REMOTE_ERROR);
    CHECK(
        b.wait_until([&] { return lab.core_b(0).last_wqe_reached() && lab.core_b(1).last_wqe_reached(); }, 1'000'000));
    Endpoint::close_event(notify);
  });
}

TEST_CASE("an SRQ grows and shrinks while messages arrive (11.2.3.4; Modify of section 11)") {
  experiment("resize", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 4, 4);
    std::size_t posted = 0, taken = 0, sent = 0;
    const auto step = [&](std::size_t room) {
      while (posted - taken < room) REQUIRE(lab.receive(posted++ % kSlots) == ND_SUCCESS);
      CHECK(lab.receive(0) == ND_NO_MORE_ENTRIES);
      for (int i = 0; i < 3; ++i, ++sent) lab.send(sent % 4, sent % kSlots, 300 + 500 * (sent % 3));
    };
    const auto collect = [&] {
      for (; taken < sent; ++taken) REQUIRE(lab.receive_result().Status == ND_SUCCESS);
    };
    for (const ULONG depth : {4, 5, 8, 30, 64, 10}) {
      REQUIRE(lab.srq->Modify(depth, 0) == ND_SUCCESS);
      step(depth);
      if (depth == 5) {
        REQUIRE(lab.srq->Modify(9, 0) == ND_SUCCESS);  // while they are on their way
        REQUIRE(lab.srq->Modify(5, 0) == ND_SUCCESS);
      }
      collect();
      if (depth == 64) {
        CHECK(lab.srq->Modify(10, 0) == ND_BUFFER_OVERFLOW);  // more is outstanding; nothing changes
        for (; sent < posted; ++sent) {
          lab.send(sent % 4, sent % kSlots, 20);
          REQUIRE(lab.send_result(sent % 4) == ND_SUCCESS);
          collect();
        }
      }
    }
    CHECK(lab.srq->Modify(32769, 0) == ND_INVALID_PARAMETER);
    CHECK(lab.srq->Modify(0, 11) == ND_INVALID_PARAMETER);
  });
}

TEST_CASE("a Write with immediate data takes a receive of the SRQ and leaves its buffers alone (9.4.3)") {
  experiment("write_immediate", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b, 2, 8);
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(lab.receive(i) == ND_SUCCESS);
    std::memset(lab.received(0), 0x5A, 3 * kSlot);
    std::memset(lab.sent(0), 0xC3, kSlot);
    std::uint32_t token = lab.region[1]->GetRemoteToken();
    const umd::Segment segment{.address = reinterpret_cast<std::uintptr_t>(lab.sent(0)),
                               .length = 1300,
                               .key = lab.region[0]->GetLocalToken()};
    const auto write = [&](std::size_t qp, std::size_t bytes, std::uint32_t immediate) {
      const auto segments = bytes != 0 ? std::span(&segment, 1) : std::span<const umd::Segment>{};
      REQUIRE(testbench::core_of(*lab.ends[qp].a)
                  .post_send({.opcode = hw::WqeOpcode::kWriteImmediate,
                              .segments = segments,
                              .remote_address = reinterpret_cast<std::uintptr_t>(lab.received(20)),
                              .remote_key = __builtin_bswap32(token),
                              .immediate = immediate})
                  .ok());
    };
    write(0, 1300, 77);
    write(1, 0, 78);
    std::array<umd::Completion, 2> got{};
    auto& core = *static_cast<nd2::CompletionQueue&>(*lab.cq).core();
    for (std::size_t filled = 0; filled < 2;) {
      filled += core.poll(std::span(got).subspan(filled));
      lab.wait(1000);
    }
    for (const auto& c : got) {
      CHECK(c.kind == umd::RequestKind::kReceiveWrite);
      CHECK(c.status == hw::CqeStatus::kSuccess);
      CHECK(c.with_immediate);
      CHECK(c.immediate == (c.byte_count != 0 ? 77 : 78));
    }
    CHECK(got[0].id + got[1].id == 1);
    for (std::size_t k = 0; k < 3 * kSlot; ++k) REQUIRE(lab.received(0)[k] == 0x5A);
    CHECK(std::memcmp(lab.received(20), lab.sent(0), 1300) == 0);
    lab.send(1, 0, 0);  // and a Send of no bytes
    CHECK(reinterpret_cast<std::size_t>(lab.receive_result().RequestContext) == 2);
  });
}
