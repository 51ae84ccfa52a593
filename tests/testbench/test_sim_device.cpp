#include <array>
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "echo_nic.hpp"
#include "testbench/barrier_switch.hpp"
#include "testbench/world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::Host;
using testbench::World;

namespace {

World& world() {
  static World instance;
  return instance;
}

/// Runs `body` on host 0 of a world as new. DMA that the IOMMU refuses is what some of it is about.
void run(const std::function<void(Host&)>& body) {
  world().reset();
  world().declare(testbench::Violation::kIommuFault);
  world().add_app(0, "test", body);
  world().run(100'000);
}

}  // namespace

TEST_CASE("registers: posted writes, reads that wait, all ones when refused") {
  run([](Host& host) {
    Device& device = host.device();
    const auto start = device.now_ns();
    device.write64(kScratch, 0x1122334455667788);
    CHECK(device.now_ns() == start);
    CHECK(device.read64(kScratch) == 0x1122334455667788);
    CHECK(device.now_ns() - start >= 500);
    CHECK(device.now_ns() - start < 600);
    CHECK(device.read64(kRefused) == ~0ULL);
  });
}

TEST_CASE("DMA memory is zeroed, reached by the NIC, and gone once it is freed") {
  run([](Host& host) {
    Device& device = host.device();
    const DmaBuffer from = device.dma_alloc(100).take();
    const DmaBuffer to = device.dma_alloc(5000).take();
    CHECK(from.size == 4096);
    CHECK(to.size == 8192);
    CHECK(static_cast<char*>(to.pointer)[8191] == 0);
    std::strcpy(static_cast<char*>(from.pointer), "through the NIC");
    copy(device, from.iova, to.iova + 4096, 4);
    CHECK(std::string(static_cast<char*>(to.pointer) + 4096, 16) == std::string("through the NIC\0", 16));
    device.dma_free(to);
    copy(device, from.iova, to.iova + 4096, 4);
    CHECK(host.iommu().fault_count() == 1);
    CHECK(host.root_complex().statistics().dropped_writes == 1);
    device.dma_free(from);
    CHECK(host.iommu().mapped_pages() == 0);
    CHECK(host.memory().used() == 0);
    const auto too_much = device.dma_alloc(std::size_t{2} << 30);
    REQUIRE_FALSE(too_much.ok());
    CHECK(too_much.error() == Error::kOutOfMemory);
  });
}

TEST_CASE("in a weak memory order barriers, and reads of registers, bring about what is seen (rules 4, 5 and 7)") {
  testbench::WorldOptions options;
  options.host.memory_order = {.weak = true, .longest_store_ns = 100'000, .longest_arrival_ns = 100'000};
  world().reset(options);
  world().add_app(0, "test", [](Host& host) {
    Device& device = host.device();
    constexpr std::size_t kBytes = 256;
    const DmaBuffer from = device.dma_alloc(kBytes).take(), to = device.dma_alloc(kBytes).take();
    const std::vector<std::uint8_t> old(kBytes, 0), stored(kBytes, 1);
    const auto there = [&] {
      return std::vector<std::uint8_t>(static_cast<std::uint8_t*>(to.pointer),
                                       static_cast<std::uint8_t*>(to.pointer) + kBytes);
    };
    const auto barrier = [](Barrier kind) { testbench::BarrierSwitch::instance().pass({"here", 1, kind}); };
    std::memset(from.pointer, 1, kBytes);
    copy(device, from.iova, to.iova, kBytes / 4);
    static_cast<void>(device.read64(kScratch));
    CHECK(there() != stored);
    CHECK(there() != old);
    barrier(Barrier::kDmaWrite);
    copy(device, from.iova, to.iova, kBytes / 4);
    CHECK(there() != stored);
    static_cast<void>(device.read64(kScratch));
    CHECK(there() == stored);
    std::memset(from.pointer, 0, kBytes);
    barrier(Barrier::kWindowWrite);
    copy(device, from.iova, to.iova, kBytes / 4);
    barrier(Barrier::kDmaRelease);
    CHECK(there() != old);
    barrier(Barrier::kDmaRead);
    CHECK(there() == old);
    device.dma_free(from);
    device.dma_free(to);
  });
  world().run(100'000);
  world().reset({});
}

TEST_CASE("application memory: pages mapped with their rights, errors for what cannot be mapped") {
  run([](Host& host) {
    Device& device = host.device();
    auto* memory = static_cast<char*>(host.memory().allocate(3 * 4096));
    std::strcpy(memory + 4096, "application");
    const auto writable = device.map_pages(memory + 100, 2 * 4096, true).take();
    const auto readable = device.map_pages(memory + 4096, 1, false).take();
    REQUIRE(writable.size() == 3);
    REQUIRE(readable.size() == 1);
    copy(device, readable[0], writable[2], 3);
    CHECK(std::string(memory + 2 * 4096) == "application");
    copy(device, writable[2], readable[0], 3);
    CHECK(host.iommu().fault_log().back().reason == model::Iommu::Reason::kReadOnly);

    const auto beyond = device.map_pages(memory, 4 * 4096, true);
    REQUIRE_FALSE(beyond.ok());
    CHECK(beyond.error() == Error::kAccessViolation);
    static const char constant[] = "constant";
    CHECK_FALSE(device.map_pages(constant, 1, true).ok());
    CHECK(host.iommu().mapped_pages() == 4);

    host.memory().release(memory);  // still pinned
    copy(device, readable[0], writable[2], 3);
    CHECK(host.iommu().fault_count() == 1);
    device.unmap_pages(memory + 100, 2 * 4096, writable);
    device.unmap_pages(memory + 4096, 1, readable);
    CHECK_FALSE(model::HostMemory::accessible(memory, 1, false));
  });
}

TEST_CASE("a burst that leaves in pieces is the same data, in aligned pieces of 8 to 32 bytes in any order") {
  std::set<std::vector<std::size_t>> ways;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    testbench::WorldOptions options;
    options.seed = seed;
    options.host.write_combining_split = 1;
    world().reset(options);
    world().add_app(0, "burst", [&](Host& host) {
      std::vector<std::size_t> sizes;
      std::set<std::uint64_t> covered;
      host.root_complex().request_taps().add(&covered, [&](const model::HostRequest& request) {
        const std::size_t bytes = request.data.size();
        CHECK(bytes >= 8);
        CHECK(bytes <= 32);
        CHECK(request.address % bytes == 0);
        for (std::size_t i = 0; i < bytes; ++i) {
          CHECK(request.data[i] == request.address - 0x1080 + i);
          CHECK(covered.insert(request.address + i).second);
        }
        sizes.push_back(request.address);
      });
      std::array<std::uint8_t, 64> data{};
      std::iota(data.begin(), data.end(), std::uint8_t{0});
      host.device().write_burst64(0x1080, data);
      host.device().elapse(1'000);
      host.root_complex().request_taps().remove(&covered);
      CHECK(covered.size() == 64);
      ways.insert(sizes);
    });
    world().run();
  }
  CHECK(ways.size() > 10);
}

TEST_CASE("interrupts reach the thread that waits") {
  run([](Host& host) {
    Device& device = host.device();
    CHECK(device.msix_message(5).address == 0xFEE0'0000);
    const auto seen = device.wake_count();
    device.write64(kSignal, device.msix_message(5).data);
    CHECK(device.wait(seen, kForever));
    CHECK(device.wake_count() == seen + 1);
    CHECK(device.wait(seen, kForever));  // it came before this wait
    const auto start = device.now_ns();
    CHECK_FALSE(device.wait(seen + 1, 100));
    CHECK(device.now_ns() - start == 100);
  });
}

TEST_CASE("a thread wakes all that wait, at once") {
  world().reset();
  std::uint64_t woken_at[2]{};
  for (int i = 0; i < 2; ++i) {
    world().add_app(0, "sleeper" + std::to_string(i), [&, i](Host& host) {
      CHECK(host.device().wait(host.device().wake_count(), kForever));
      woken_at[i] = host.device().now_ns();
    });
  }
  world().add_app(0, "waker", [](Host& host) {
    host.device().elapse(12'345);
    host.device().wake();
  });
  world().run(100'000);
  CHECK(woken_at[0] == 12'345);
  CHECK(woken_at[1] == 12'345);
}

TEST_CASE("a thread that is torn down waits for nothing") {
  world().reset();
  struct Driver {
    Driver(Device& d, bool& w, bool& g) : device(d), woken(w), gone(g) {}
    ~Driver() {
      woken = device.wait(device.wake_count(), kForever);
      gone = device.removed();
    }
    Device& device;
    bool& woken;
    bool& gone;
  };
  bool woken = true;
  bool gone = false;
  world().add_app(0, "driver", [&](Host& host) {
    const Driver driver(host.device(), woken, gone);
    CHECK_FALSE(host.device().removed());
    host.device().elapse(1'000'000'000);
  });
  CHECK_THROWS_AS(world().run(5'000), testbench::SimulationTimeout);
  CHECK_FALSE(woken);
  CHECK(gone);
}

TEST_CASE("what no driver may do is reported after the run") {
  world().reset();
  world().add_app(1, "bad", [](Host& host) { host.device().dma_free({host.memory().allocate(1), 0x1000, 4096}); });
  CHECK_THROWS_WITH(world().run(), Catch::Matchers::Contains("host1") && Catch::Matchers::Contains("dma_free"));
}

TEST_CASE("a thread that is torn down finds its device gone, and its loops end") {
  world().reset();
  struct Driver {
    Driver(Device& d, std::uint64_t& v) : device(d), value(v) {}
    ~Driver() {
      const auto end = device.now_ns() + 10'000;
      while (device.now_ns() < end) {
        device.write64(kScratch, 0);
        value = device.read64(kScratch);
        device.elapse(100);
        static_cast<void>(device.wait(device.wake_count(), 100));
      }
    }
    Device& device;
    std::uint64_t& value;
  };
  std::uint64_t value = 0;
  world().add_app(0, "driver", [&](Host& host) {
    const Driver driver(host.device(), value);
    host.device().elapse(1'000'000'000);
  });
  CHECK_THROWS_AS(world().run(5'000), testbench::SimulationTimeout);
  CHECK(value == ~0ULL);
  CHECK(world().host(0).device().read64(kScratch) == ~0ULL);  // no thread of simulated time
}

// A look costs time before it finds something, as umd's poll does. What three programs find, when, and who is first.
TEST_CASE("a program that sleeps until something has happened finds it when one that polls would") {
  constexpr std::array<std::uint64_t, 3> kCostNs{10, 10, 0}, kStepNs{50, 50, 7};
  constexpr std::uint64_t kThings = 300;
  const auto found_by = [&](bool sleeps) {
    std::string all;
    std::uint64_t things = 0;
    world().reset();
    for (std::size_t p = 0; p < kCostNs.size(); ++p) {
      world().add_app(0, "program", [&, p](Host& host) {
        auto& device = host.device();
        for (std::uint64_t seen = 0; seen < kThings;) {
          const auto look = device.look();
          device.elapse(kCostNs[p]);
          if (things != seen) {
            seen = things;
            all += fmt::format("{} at {} ns: {}\n", p, device.now_ns(), seen);
          } else if (sleeps) {
            device.look_again(look, kStepNs[p]);
          } else {
            device.elapse(kStepNs[p]);
          }
        }
      });
    }
    // Things happen as DMA writes do, at any picosecond and now and then at that of a look.
    world().add_app(0, "things", [&](Host& host) {
      model::Random random(7);
      model::TimedEvent event;
      sc_core::sc_spawn_options options;
      options.spawn_method();
      options.dont_initialize();
      options.set_sensitivity(&event.event());
      const auto method = sc_core::sc_spawn(
          [&] {
            ++things;
            host.device().happen();
          },
          sc_core::sc_gen_unique_name("thing"), &options);
      for (std::uint64_t i = 0; i < kThings; ++i) {
        const auto ns = 1 + random.below(random.chance(0.5) ? 20 : 300);
        event.notify_at(model::now_ps() + ns * 1000 - (random.chance(0.5) ? random.below(1000) : 0));
        host.device().elapse(ns);
      }
      sc_core::sc_process_handle(method).kill();
    });
    world().run(1'000'000);
    return all;
  };
  const auto polled = found_by(false), slept = found_by(true);
  REQUIRE(polled.size() > 1000);
  CHECK(polled == slept);
}

TEST_CASE("a program that sleeps until something has happened looks at the end of its time") {
  run([](Host& host) {
    auto& device = host.device();
    const auto start = device.now_ns();
    device.look_again(device.look(), 100, start + 950);
    CHECK(device.now_ns() == start + 1000);
  });
}

TEST_CASE("random numbers and time start again with a reset") {
  std::uint64_t first[2], time[2];
  for (int i = 0; i < 2; ++i) {
    run([&](Host& host) {
      time[i] = host.device().now_ns();
      first[i] = host.device().random64();
      CHECK(host.device().random64() != first[i]);
    });
  }
  CHECK(first[0] == first[1]);
  CHECK(time[0] == 0);
  CHECK(time[1] == 0);
}
