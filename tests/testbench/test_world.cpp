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
using testbench::Host;
using testbench::World;
using testbench::WorldOptions;
using Catch::Matchers::Contains;

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
  pcap_t* file = pcap_open_offline_with_tstamp_precision(options.capture_path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
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

TEST_CASE("the watchdog names who waits and what the hosts did") {
  world().reset();
  world().add_app(1, "stuck", [](Host& host) {
    for (;;) host.device().elapse(100);
  });
  CHECK_THROWS_WITH(world().run(20'000), Contains("20 us") && Contains("host1/stuck") && Contains("host0: DMA reads 0") && Contains("IOMMU faults"));
}

TEST_CASE("a file that cannot be written is an error") {
  WorldOptions options;
  options.capture_path = "/nonexistent/world.pcap";
  CHECK_THROWS_WITH(world().reset(options), Contains("/nonexistent/world.pcap"));
  world().reset(WorldOptions{});
}

TEST_CASE("the environment gives seed, waves and capture") {
  setenv("RNIC_SEED", "0x1F", 1);
  setenv("WAVES", "1", 1);
  setenv("CAPTURE", "0", 1);
  const WorldOptions options = WorldOptions::from_environment("name");
  CHECK(options.seed == 31);
  CHECK(options.trace_path == "name.fst");
  CHECK(options.capture_path.empty());
  setenv("RNIC_SEED", "many", 1);
  CHECK_THROWS_AS(WorldOptions::from_environment("name"), std::invalid_argument);
  unsetenv("RNIC_SEED");
  unsetenv("WAVES");
  unsetenv("CAPTURE");
}
