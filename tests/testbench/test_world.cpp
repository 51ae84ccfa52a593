#include <pcap/pcap.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "echo_nic.hpp"
#include "testbench/world.hpp"

using namespace rnic;
using namespace rnic::test;
using Catch::Matchers::Contains;
using model::Picoseconds;
using testbench::Host;
using testbench::NicKind;
using testbench::World;
using testbench::WorldOptions;

namespace {

World& world() {
  static World instance;
  return instance;
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Traffic whose time stamps depend on every random choice of the world. Returns what host 0 saw.
std::vector<std::uint64_t> traffic(const WorldOptions& options) {
  std::vector<std::uint64_t> seen;
  world().reset(options);
  for (std::size_t index = 0; index < 2; ++index) {
    world().add_app(index, "traffic", [index, &seen](Host& host) {
      Device& device = host.device();
      const DmaBuffer buffer = device.dma_alloc(4096).take();
      for (int i = 0; i < 30; ++i) {
        const std::uint64_t random = device.random64();
        device.write64(kSend, 60 + random % 1000);
        copy(device, buffer.iova, buffer.iova, 60);
        device.elapse(random % 100);
        if (index == 0) seen.push_back(device.read64(kReceived) ^ device.now_ns() ^ random ^ buffer.iova);
      }
    });
  }
  world().run();
  seen.push_back(world().host(0).nic().cycles());
  return seen;
}

}  // namespace

TEST_CASE("one seed gives one result, whatever ran before; another seed another") {
  WorldOptions options;
  options.host.root_complex.reorder_probability = 0.5;
  options.host.root_complex.split_probability = 0.5;
  options.capture_path = (std::filesystem::temp_directory_path() / "rnic_test_world.pcap").string();
  const auto first = traffic(options);
  const std::string capture = slurp(options.capture_path);
  world().add_app(0, "something else", [](Host& host) { host.device().elapse(777); });
  world().run();
  world().idle(1'234);
  CHECK(traffic(options) == first);
  CHECK(slurp(options.capture_path) == capture);
  options.seed = 2;
  CHECK(traffic(options) != first);
  std::filesystem::remove(options.capture_path);
}

TEST_CASE("the capture file holds the frames of both hosts") {
  WorldOptions options;
  options.capture_path = (std::filesystem::temp_directory_path() / "rnic_test_world.pcap").string();
  world().reset(options);
  for (std::size_t index = 0; index < 2; ++index) {
    world().add_app(index, "send", [index](Host& host) {
      host.device().write64(kSend, 100 + index);
      host.device().elapse(2'000);
    });
  }
  world().run();
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* file =
      pcap_open_offline_with_tstamp_precision(options.capture_path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  REQUIRE(file != nullptr);
  std::size_t bytes = 0, frames = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(file, &header, &data) == 1) {
    bytes += header->caplen;
    ++frames;
    CHECK(header->ts.tv_sec == 0);
    CHECK(header->ts.tv_usec < 1'000);  // since the reset
  }
  pcap_close(file);
  CHECK(frames == 2);
  CHECK(bytes == 201);
  std::filesystem::remove(options.capture_path);
}

TEST_CASE("an exception of an application comes out; the next case is not affected") {
  world().reset();
  world().add_app(0, "throws", [](Host&) { throw std::runtime_error("application failed"); });
  world().add_app(1, "waits", [](Host& host) { host.device().elapse(1'000'000); });
  CHECK_THROWS_WITH(world().run(), "application failed");
  world().reset();
  world().add_app(0, "fine", [](Host& host) { CHECK(host.memory().used() == 0); });
  world().run();
}

TEST_CASE("DMA to memory that the NIC may not have fails the run, unless it was declared") {
  const auto stray = [](Host& host) {
    const DmaBuffer buffer = host.device().dma_alloc(4096).take();
    copy(host.device(), buffer.iova, 0x5000, 1);
  };
  world().reset();
  world().add_app(1, "stray", stray);
  CHECK_THROWS_AS(world().run(), testbench::ViolationError);
  world().reset();
  world().declare(testbench::Violation::kIommuFault);
  world().add_app(1, "stray", stray);
  world().run();
  world().reset();  // and ends with a reset
  world().add_app(1, "stray", stray);
  CHECK_THROWS_WITH(world().run(), Contains("host1") && Contains("write of 0x5000"));
}

TEST_CASE("an interrupt that names no vector, and one while the function is masked, fail the run") {
  const auto signal = [](std::uint32_t data, bool masked) {
    world().reset();
    world().add_app(0, "signal", [=](Host& host) {
      model::PcieConfig config;
      config.msix_mask = masked;
      host.root_complex().set_config(config);
      host.device().elapse(5'000);
      host.device().write64(kSignal, data);
      host.device().elapse(2'000);
    });
    world().run();
  };
  CHECK_NOTHROW(signal(31, false));
  CHECK_THROWS_WITH(signal(32, false), Contains("name no vector"));
  CHECK_THROWS_WITH(signal(31, true), Contains("masked"));
}

TEST_CASE("what the driver throws away fails the run") {
  world().reset();
  world().add_app(0, "driver", [](Host& host) { host.device().report(DeviceOddity::kUnknownCompletion, 0x1234); });
  CHECK_THROWS_WITH(world().run(), Contains("host0") && Contains("0x1234"));
}

TEST_CASE("applications that must stop come to their end by their own way, destructors and all") {
  struct Object {
    Object(Host& h, bool& e) : host(h), ended(e) {}
    ~Object() {
      host.device().elapse(1'000);  // as a driver's that waits for its device
      ended = host.device().removed();
    }
    Host& host;
    bool& ended;
  };
  bool ended[2]{};
  world().reset();
  bool after = false;
  world().add_app(0, "in a destructor", [&](Host& host) {
    { const Object object(host, ended[0]); }
    after = true;
  });
  world().add_app(0, "polls for ever", [&](Host& host) {
    const Object object(host, ended[1]);
    for (;;) host.device().elapse(100);
  });
  world().add_app(1, "throws", [](Host& host) {
    host.device().elapse(500);
    throw std::runtime_error("application failed");
  });
  CHECK_THROWS_WITH(world().run(), "application failed");
  CHECK(after);
  CHECK(ended[0]);
  CHECK(ended[1]);
}

TEST_CASE("the watchdog names who waits and what the hosts did") {
  world().reset();
  world().add_app(1, "stuck", [](Host& host) {
    for (;;) host.device().elapse(100);
  });
  CHECK_THROWS_WITH(world().run(20'000), Contains("20 us") && Contains("host1/stuck") &&
                                             Contains("host0: DMA reads 0") && Contains("IOMMU faults"));
}

TEST_CASE("a file that cannot be written is an error") {
  WorldOptions options;
  options.capture_path = "/nonexistent/world.pcap";
  CHECK_THROWS_WITH(world().reset(options), Contains("/nonexistent/world.pcap"));
  world().reset(WorldOptions{});
}

TEST_CASE("the environment gives seed, NIC, waves and capture") {
  setenv("RNIC_SEED", "0x1F", 1);
  setenv("WAVES", "1", 1);
  setenv("CAPTURE", "0", 1);
  CHECK(WorldOptions::from_environment("name").host.nic.kind == NicKind::kRtl);
  setenv("RNIC_NIC", "model", 1);
  const WorldOptions options = WorldOptions::from_environment("name");
  CHECK(options.host.nic.kind == NicKind::kModel);
  setenv("RNIC_NIC", "board", 1);
  CHECK_THROWS_AS(WorldOptions::from_environment("name"), std::invalid_argument);
  unsetenv("RNIC_NIC");
  CHECK(options.seed == 31);
  CHECK(options.trace_path == "name.fst");
  CHECK(options.capture_path.empty());
  setenv("RNIC_SEED", "many", 1);
  CHECK_THROWS_AS(WorldOptions::from_environment("name"), std::invalid_argument);
  unsetenv("RNIC_SEED");
  unsetenv("WAVES");
  unsetenv("CAPTURE");
}

namespace {

/// A DMA copy whose read is never answered, and an application that polls for its result for ever.
void start_stuck_copy() {
  world().add_app(0, "stuck", [](Host& host) {
    Device& device = host.device();
    const DmaBuffer buffer = device.dma_alloc(4096).take();
    auto* const done = static_cast<volatile std::uint8_t*>(buffer.pointer) + 2048;
    static_cast<std::uint8_t*>(buffer.pointer)[0] = 1;
    copy(device, buffer.iova, buffer.iova + 2048, 1);
    while (*done == 0) device.elapse(200);
  });
}

WorldOptions with_lost_read() {
  WorldOptions options;
  model::PcieRule rule;
  rule.fault = model::PcieFault::kTimeout;
  options.pcie_faults[0].emplace().rules = {rule};
  return options;
}

}  // namespace

TEST_CASE("a hang names who waits, what was done to the hosts, and which engine of which NIC holds") {
  WorldOptions options = with_lost_read();
  options.hang_ns = 1'000'000;
  world().reset(options);
  start_stuck_copy();
  const Picoseconds start = model::now_ps();
  try {
    world().run();
    FAIL("no hang");
  } catch (const testbench::Hang& hang) {
    const std::string text = hang.what();
    INFO(text);
    CHECK_THAT(text, Contains("nothing moves") && Contains("host0/stuck") && Contains("PCI Express timeout 1"));
    const auto host0 = text.find("host0: DMA"), host1 = text.find("host1: DMA"),
               state = text.find("rnic_top.state_q = 1");
    CHECK(host0 < state);
    CHECK(state < host1);
    CHECK(text.find("state_q", host1) == std::string::npos);
    CHECK(text.find("every engine of the NIC rests", host1) != std::string::npos);
  }
  // After the completion time-out that the NIC may wait for.
  const Picoseconds ms = 1'000'000'000;
  CHECK(model::now_ps() - start >= 56 * ms);
  CHECK(model::now_ps() - start < 58 * ms);
}

TEST_CASE("a time-out shows the engines too") {
  world().reset(with_lost_read());
  start_stuck_copy();
  try {
    world().run(100'000);
    FAIL("no time-out");
  } catch (const testbench::Hang&) {
    FAIL("no hang yet");
  } catch (const testbench::SimulationTimeout& timeout) {
    CHECK_THAT(timeout.what(), Contains("100 us") && Contains("rnic_top.state_q = 1"));
  }
}

TEST_CASE("the port that waits is named: requests held back by PCI Express") {
  WorldOptions options;
  options.pcie_faults[1].emplace().stalls = {{0, 1e9}};
  world().reset(options);
  world().add_app(1, "held", [](Host& host) {
    const DmaBuffer buffer = host.device().dma_alloc(4096).take();
    for (;;) copy(host.device(), buffer.iova, buffer.iova, 1);
  });
  CHECK_THROWS_WITH(world().run(20'000), Contains("rnic_top.dma_req: valid, not ready"));
}

TEST_CASE(
    "no hang: a long sleep, a frame that is held on the wire, a NIC that may not send, polling that reaches the NIC") {
  WorldOptions options;
  options.hang_ns = 20'000;
  world().reset(options);
  world().add_app(0, "sleeps", [](Host& host) {
    for (int i = 0; i < 3; ++i) host.device().elapse(70'000);
  });
  world().run();

  model::WireRule hold;
  hold.fault = model::WireFault::kReorder;
  hold.parameters.reorder_hold_ns = 200'000;
  options.wire.faults[0].rules = {hold};
  options.pcie_faults[0].emplace().stalls = {{250'000, 100'000}};
  world().reset(options);
  world().add_app(0, "sends", [](Host& host) { host.device().write64(kSend, 100); });
  world().add_app(1, "counts", [](Host& host) {
    while (host.device().read64(kReceived) == 0) host.device().elapse(15'000);
  });
  world().run();
  CHECK(world().wire().direction(0).under_way() == 0);
  world().add_app(0, "copies when the stall is over", [](Host& host) {
    Device& device = host.device();
    while (device.now_ns() < 260'000) device.read64(kScratch);
    const DmaBuffer buffer = device.dma_alloc(4096).take();
    auto* const done = static_cast<volatile std::uint8_t*>(buffer.pointer) + 2048;
    static_cast<std::uint8_t*>(buffer.pointer)[0] = 1;
    copy(device, buffer.iova, buffer.iova + 2048, 1);
    while (*done == 0) device.elapse(200);
    CHECK(device.now_ns() > 350'000);
  });
  world().run();
}

TEST_CASE("hang detection can be switched off") {
  WorldOptions options;
  options.hang_ns = 0;
  world().reset(options);
  world().add_app(0, "polls", [](Host& host) {
    for (int i = 0; i < 1000; ++i) host.device().elapse(30'000);
  });
  world().run();
}

TEST_CASE("faults of the wire reach a NIC, and the next reset takes them away") {
  WorldOptions options;
  options.wire.faults[0].drop = 1;
  options.wire.faults[1].duplicate = 1;
  for (const bool faults : {true, false}) {
    world().reset(faults ? options : WorldOptions{});
    for (std::size_t index = 0; index < 2; ++index) {
      world().add_app(index, "send", [=](Host& host) {
        host.device().write64(kSend, 100);
        host.device().elapse(2'000);
        const std::uint64_t frames = host.device().read64(kReceived) & 0xFFFF'FFFF;
        CHECK(frames == (!faults ? 1 : index == 0 ? 2 : 0));
      });
    }
    world().run();
  }
}

TEST_CASE("two hosts have a wire, and no switch unless they are to") {
  world().reset();
  CHECK(world().hosts() == 2);
  CHECK_THROWS_WITH(world().ethernet_switch(), Contains("no switch"));
  for (std::size_t index = 0; index < 2; ++index) {
    CHECK(&world().plug(index).wire == &world().wire());
    CHECK(world().plug(index).end == index);
  }
  WorldOptions options;
  options.switched = true;
  CHECK_THROWS_AS(world().reset(options), std::invalid_argument);
  options = {};
  options.hosts = 3;
  CHECK_THROWS_AS(world().reset(options), std::invalid_argument);
  world().reset();
}
