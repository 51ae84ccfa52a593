#include <catch2/catch.hpp>
#include <array>
#include <cstring>
#include <filesystem>

#include "echo_nic.hpp"
#include "testbench/world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::Host;
using testbench::World;
using testbench::WorldOptions;

namespace {

World& world() {
  static World instance;
  return instance;
}

void run(const std::function<void(Host&)>& body, const WorldOptions& options = {}) {
  world().reset(options);
  world().add_app(0, "test", body);
  world().run(10'000'000);
}

}  // namespace

TEST_CASE("headers and lanes: register accesses at each offset") {
  run([](Host& host) {
    Device& device = host.device();
    device.write64(kScratch, 0xFEDCBA9876543210);
    CHECK(device.read64(kScratch) == 0xFEDCBA9876543210);
    std::array<std::uint8_t, 64> burst{};
    for (std::size_t i = 0; i < 64; ++i) burst[i] = static_cast<std::uint8_t>(i + 1);
    device.write_burst64(kScratch, burst);
    CHECK(device.read64(kScratch) == 0x0807060504030201);
  });
}

TEST_CASE("the NIC sees its configuration, also when it changes") {
  run([](Host& host) {
    // Payload 256, reads 512, bus master, MSI-X on, not masked.
    CHECK(host.device().read64(kLimits) == (1 | 2 << 3 | 1 << 6 | 1 << 7 | 1 << 9));
    model::PcieConfig config;
    config.max_payload = 1024;
    config.max_read_request = 4096;
    config.msix_mask = true;
    config.extended_tags = false;
    config.completion_timeout_disable = true;
    host.root_complex().set_config(config);
    CHECK(host.device().read64(kLimits) == (3 | 5 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10));
    host.root_complex().hold(model::PcieWay::kToHost, {model::CreditKind::kNonPosted});
    CHECK(host.device().read64(kLimits) == (3 | 5 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11));
  });
}

TEST_CASE("the NIC's TLPs wait for credits of their kind") {
  run([](Host& host) {
    using enum model::CreditKind;
    Device& device = host.device();
    auto& root = host.root_complex();
    const auto& statistics = root.statistics();
    const DmaBuffer from = device.dma_alloc(4096).take();
    const DmaBuffer to = device.dma_alloc(4096).take();
    root.hold(model::PcieWay::kToHost, {kPosted});
    copy(device, from.iova, to.iova, 64);
    CHECK(statistics.dma_reads == 1);
    CHECK(statistics.dma_writes == 0);
    root.hold(model::PcieWay::kToHost, {});
    device.elapse(2000);
    CHECK(statistics.dma_writes == 1);
    root.hold(model::PcieWay::kToHost, {kPosted, kNonPosted});
    copy(device, from.iova, to.iova, 64);
    CHECK(statistics.dma_reads == 1);
    root.hold(model::PcieWay::kToHost, {kCompletion});
    device.elapse(2000);
    CHECK(statistics.dma_writes == 2);
    const auto start = device.now_ns();
    device.write64(kScratch, 5);
    root.hold(model::PcieWay::kToHost, {});
    CHECK(device.read64(kScratch) == 5);
    root.hold(model::PcieWay::kToHost, {kCompletion});
    sc_core::sc_spawn([&root] {
      sc_core::wait(3, sc_core::SC_US);
      root.hold(model::PcieWay::kToHost, {});
    });
    CHECK(device.read64(kScratch) == 5);
    CHECK(device.now_ns() - start > 3000);
  });
}

TEST_CASE("DMA of every length and alignment, completions split at random") {
  WorldOptions options;
  options.host.root_complex.split_probability = 0.5;
  options.host.root_complex.config.max_payload = 512;
  run(
      [](Host& host) {
        Device& device = host.device();
        const DmaBuffer from = device.dma_alloc(4096).take();
        const DmaBuffer to = device.dma_alloc(4096).take();
        auto* source = static_cast<std::uint8_t*>(from.pointer);
        auto* target = static_cast<std::uint8_t*>(to.pointer);
        model::Random random(1);
        for (std::size_t i = 0; i < 4096; ++i) source[i] = static_cast<std::uint8_t>(random.next());
        for (int i = 0; i < 200; ++i) {
          const std::uint64_t offset = 4 * random.below(1024);
          const auto dwords =
              static_cast<std::uint32_t>(1 + random.below(std::min<std::uint64_t>(128, 1024 - offset / 4)));
          std::memset(target, 0, 4096);
          copy(device, from.iova + offset, to.iova + offset, dwords, static_cast<std::uint32_t>(random.below(1024)));
          for (std::size_t at = 0; at < 4096; ++at) {
            const bool inside = at >= offset && at < offset + 4 * dwords;
            if (target[at] != (inside ? source[at] : 0))
              FAIL("byte " << at << " of " << dwords << " dwords at " << offset);
          }
        }
        world().declare(testbench::Violation::kIommuFault);
        copy(device, 0x1000, to.iova, 1);
        CHECK(device.read64(kStatus) == 1);  // Unsupported Request
      },
      options);
}

TEST_CASE("frames cross the wire in both directions") {
  WorldOptions options;
  options.wire.delay_ns = 100;
  world().reset(options);
  const auto app = [](Host& host) {
    for (const std::uint64_t bytes : {60, 64, 65, 128, 1500, 1}) {
      host.device().write64(kSend, bytes);
      host.device().elapse(1'000);
    }
    const std::uint64_t received = host.device().read64(kReceived);
    CHECK((received & 0xFFFF'FFFF) == 6);
    CHECK(received >> 32 == 60 + 64 + 65 + 128 + 1500 + 60);  // the last one is padded
  };
  world().add_app(0, "a", app);
  world().add_app(1, "b", app);
  world().run();
  for (std::size_t i = 0; i < 2; ++i) CHECK(world().wire().statistics(i).underruns == 0);
}

TEST_CASE("the reset pin clears registers") {
  run([](Host& host) {
    host.device().write64(kScratch, 5);
    CHECK(host.device().read64(kScratch) == 5);
    host.nic().reset();
    CHECK(host.device().read64(kScratch) == 0);
  });
}

TEST_CASE("a trace is written on demand") {
  const auto path = std::filesystem::temp_directory_path() / "rnic_test_nic_rtl.fst";
  std::filesystem::remove(path);
  run([&](Host& host) {
    host.nic().start_trace(path.string());
    CHECK_THROWS_AS(host.nic().start_trace(path.string()), std::runtime_error);
    host.device().elapse(1'000);
    host.nic().stop_trace();
  });
  CHECK(std::filesystem::file_size(path) > 1000);
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(world().host(0).nic().start_trace("/nonexistent/x.fst"),
                    Catch::Matchers::Contains("/nonexistent/x.fst"));
}
