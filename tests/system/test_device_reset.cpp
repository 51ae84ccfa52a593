#include <catch2/catch.hpp>

#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;

// A device that failed is reset and brought up again in a machine that runs on (docs/driver.md, PCI Express base
// specification 6.6.2): the application is told, gets everything back, and begins anew; nothing of the life before
// reaches memory.

namespace {

constexpr std::size_t kBytes = 64 * 1024;

/// The next DMA read of host 0 is never answered.
void lose_next_read(World& world) {
  model::PcieRule rule;
  rule.fault = model::PcieFault::kTimeout;
  rule.match.access = model::PcieAccess::kDmaRead;
  world.host(0).root_complex().arm(rule);
}

bool write_and_check(Endpoint& a, Endpoint& b, std::uint8_t fill) {
  auto* from = static_cast<std::uint8_t*>(a.host().memory().allocate(kBytes));
  auto* to = static_cast<std::uint8_t*>(b.host().memory().allocate(kBytes));
  for (std::size_t i = 0; i < kBytes; ++i) from[i] = static_cast<std::uint8_t>(fill + i * 7 + (i >> 8));
  bool good = false;
  {
    auto source = a.register_memory(from, kBytes, 0);
    auto sink = b.register_memory(to, kBytes, ND_MR_FLAG_ALLOW_REMOTE_WRITE);
    Pair pair(a, b, {});
    const ND2_SGE sge{from, kBytes, source->GetLocalToken()};
    REQUIRE(pair.ends[0].qp->Write(nullptr, &sge, 1, reinterpret_cast<std::uint64_t>(to), sink->GetRemoteToken(), 0) ==
            ND_SUCCESS);
    ND2_RESULT result{};
    good = take_result(a, *pair.ends[0].initiator_cq, result, 10'000'000) && result.Status == ND_SUCCESS;
  }
  good = good && std::equal(from, from + kBytes, to);
  a.host().memory().release(from);
  b.host().memory().release(to);
  return good;
}

}  // namespace

// docs/ports.md, quiet_o: nothing in the NIC changes by itself. After a reset its tables are cleared.
TEST_CASE("a NIC that nobody talks to says that it is quiet when it is ready, and not before") {
  auto options = WorldOptions::from_environment("device_reset");
  options.check_rest = true;
  auto& world = fresh_world(options);
  world.idle(20'000);
  for (std::size_t i = 0; i < world.hosts(); ++i) {
    auto& nic = world.host(i).nic();
    CHECK(nic.state() == std::vector<std::string>{});
    CHECK(nic.cycles() >= 4'990);
    CHECK(nic.clocked() < 2'000);
  }
}

TEST_CASE(
    "a completion that is lost costs a reset: the application is told, everything is given back, a new adapter works") {
  auto& world = fresh_world(WorldOptions::from_environment("device_reset"));
  world.add_app(0, "test", [&](Host& host) {
    Endpoint a(host, {.completion_timeout = hw::CompletionTimeoutRange::kA1});
    Endpoint b(world.host(1));
    REQUIRE(write_and_check(a, b, 1));
    for (int round = 0; round < 2; ++round) {
      auto& adapter_before = a.adapter();
      auto* memory = static_cast<std::uint8_t*>(host.memory().allocate(kBytes));
      ComPtr<IND2MemoryRegion> region;
      ComPtr<IND2CompletionQueue> cq;
      REQUIRE(adapter_before.CreateMemoryRegion(IID_IND2MemoryRegion, a.file(), region.put()) == ND_SUCCESS);
      REQUIRE(adapter_before.CreateCompletionQueue(IID_IND2CompletionQueue, a.file(), 16, 0, 0, cq.put()) ==
              ND_SUCCESS);
      OVERLAPPED registering = a.open_event();
      OVERLAPPED notifying = a.open_event();
      REQUIRE(region->Register(memory, kBytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &registering) == ND_PENDING);
      REQUIRE(region->GetOverlappedResult(&registering, TRUE) == ND_SUCCESS);
      REQUIRE(cq->Notify(ND_CQ_NOTIFY_ANY, &notifying) == ND_PENDING);

      lose_next_read(world);
      const auto start = host.device().now_ns();
      CHECK(cq->Resize(100) == ND_DEVICE_REMOVED);
      CHECK(host.device().now_ns() - start < 20'000'000);
      CHECK(cq->GetOverlappedResult(&notifying, TRUE) == ND_INTERNAL_ERROR);
      CHECK(cq->Notify(ND_CQ_NOTIFY_ANY, &notifying) == ND_DEVICE_REMOVED);
      CHECK(region->Deregister(&registering) == ND_PENDING);
      CHECK(region->GetOverlappedResult(&registering, TRUE) == ND_SUCCESS);
      host.memory().release(memory);
      Endpoint::close_event(registering);
      Endpoint::close_event(notifying);
      cq.reset();
      region.reset();
      a.reopen();
      CHECK(write_and_check(a, b, static_cast<std::uint8_t>(2 + round)));
      CHECK(write_and_check(b, a, static_cast<std::uint8_t>(4 + round)));
    }
  });
  world.run(2'000'000'000);
  CHECK(world.host(0).iommu().fault_count() == 0);
  CHECK(world.host(0).iommu().mapped_pages() == 0);
}

TEST_CASE("a device reset under traffic touches nothing that was given back, and leaves its neighbours alone") {
  auto& world = fresh_world(WorldOptions::from_environment("device_reset_traffic"));
  world.declare(testbench::Violation::kBadFrame);  // the reset cuts the one that is on its way
  world.add_app(0, "test", [&](Host& host) {
    Endpoint a(host);
    Endpoint b(world.host(1));
    auto* here = static_cast<std::uint8_t*>(host.memory().allocate(kBytes));
    auto* there = static_cast<std::uint8_t*>(world.host(1).memory().allocate(kBytes));
    for (const std::uint64_t after_ns : {1'000, 3'333, 7'777}) {
      {
        auto region_a = a.register_memory(here, kBytes, ND_MR_FLAG_ALLOW_REMOTE_READ);
        auto region_b = b.register_memory(there, kBytes, ND_MR_FLAG_ALLOW_REMOTE_WRITE);
        Pair pair(a, b, {});
        const ND2_SGE from_a{here, kBytes, region_a->GetLocalToken()};
        const ND2_SGE from_b{there, kBytes, region_b->GetLocalToken()};
        for (int i = 0; i < 8; ++i) {
          REQUIRE(pair.ends[0].qp->Write(nullptr, &from_a, 1, reinterpret_cast<std::uint64_t>(there),
                                         region_b->GetRemoteToken(), 0) == ND_SUCCESS);
          REQUIRE(pair.ends[1].qp->Read(nullptr, &from_b, 1, reinterpret_cast<std::uint64_t>(here),
                                        region_a->GetRemoteToken(), 0) == ND_SUCCESS);
        }
        host.device().elapse(after_ns);
        a.kernel().fail(*a.kernel().life());
        CHECK(pair.ends[0].qp->Flush() == ND_DEVICE_REMOVED);
        a.deregister(*region_a);
        host.device().elapse(100'000);
        CHECK(host.iommu().fault_count() == 0);
      }
      a.reopen();
      CHECK(write_and_check(a, b, 9));
    }
    host.memory().release(here);
    world.host(1).memory().release(there);
  });
  world.run(2'000'000'000);
  CHECK(world.host(0).iommu().fault_count() == 0);
}
