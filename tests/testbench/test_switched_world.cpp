// A World whose hosts hang on a switch: RNIC_TEST_HOSTS of them, 3 without word. The stand-in for the NIC sends frames
// from 06:07:08:09:0a:0b to 00:01:02:03:04:05, a station that there is not: they go to all other hosts.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "echo_nic.hpp"
#include "testbench/world.hpp"

using namespace rnic;
using namespace rnic::test;
using Catch::Matchers::Contains;
using testbench::Host;
using testbench::World;
using testbench::WorldOptions;

namespace {

WorldOptions switched() {
  const char* const text = std::getenv("RNIC_TEST_HOSTS");
  WorldOptions options;
  options.hosts = text == nullptr ? 3 : std::strtoul(text, nullptr, 10);
  options.switched = options.hosts == 2;
  return options;
}

World& world() {
  static World instance(switched());
  return instance;
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t frames(Host& host) { return host.device().read64(kReceived) & 0xFFFF'FFFF; }

/// Each host sends frames of its own length at random times; what the last of them saw.
std::vector<std::uint64_t> traffic(const WorldOptions& options) {
  std::vector<std::uint64_t> seen;
  world().reset(options);
  for (std::size_t index = 0; index < options.hosts; ++index) {
    world().add_app(index, "traffic", [&, index](Host& host) {
      Device& device = host.device();
      for (int i = 0; i < 10; ++i) {
        device.write64(kSend, 100 + index);
        device.elapse(100 + device.random64() % 1'000);  // the frame has left by then
        if (index == options.hosts - 1) seen.push_back(device.read64(kReceived) ^ device.now_ns());
      }
      device.elapse(2'000);
    });
  }
  world().run();
  return seen;
}

}  // namespace

TEST_CASE("a frame of each host comes to all others, and host i is at port i") {
  const auto options = switched();
  REQUIRE(world().hosts() == options.hosts);
  for (std::size_t from = 0; from < options.hosts; ++from) {
    world().reset(options);
    world().add_app(from, "send", [&](Host& host) {
      host.device().write64(kSend, 200);
      host.device().elapse(2'000);
      for (std::size_t i = 0; i < options.hosts; ++i) CHECK(frames(world().host(i)) == (i == from ? 0 : 1));
    });
    world().run();
    CHECK(world().ethernet_switch().statistics(from).received == 1);
    CHECK(world().ethernet_switch().port_of(0x0607'0809'0A0B) == from);
    CHECK(world().plug(from).wire.statistics(world().plug(from).end).frames == 1);
  }
}

TEST_CASE("memory of the hosts lies apart") {
  world().reset(switched());
  std::set<std::uint64_t> bases;
  for (std::size_t i = 0; i < world().hosts(); ++i) {
    auto& memory = world().host(i).memory();
    CHECK(memory.size() <= model::HostMemory::kHostStride);
    CHECK(memory.base() % model::HostMemory::kHostStride == 0);
    bases.insert(memory.base());
  }
  CHECK(bases.size() == world().hosts());
}

TEST_CASE("one seed gives one result and one capture, whatever ran before; another seed another") {
  auto options = switched();
  options.wire.jitter_ns = 300;
  options.capture_path =
      (std::filesystem::temp_directory_path() / ("rnic_switched_world" + std::to_string(options.hosts) + ".pcap"))
          .string();
  const auto first = traffic(options);
  const std::string capture = slurp(options.capture_path);
  // A header, and each frame once, as its host sent it.
  std::size_t bytes = 24;
  for (std::size_t i = 0; i < options.hosts; ++i) bytes += 10 * (16 + 100 + i);
  CHECK(capture.size() == bytes);
  world().add_app(0, "something else", [](Host& host) { host.device().elapse(777); });
  world().run();
  world().idle(1'234);
  CHECK(traffic(options) == first);
  CHECK(slurp(options.capture_path) == capture);
  options.seed = 2;
  CHECK(traffic(options) != first);
  options.capture_path.clear();
  world().reset(options);
  std::filesystem::remove_all(std::filesystem::temp_directory_path() /
                              ("rnic_switched_world" + std::to_string(options.hosts) + ".pcap"));
}

TEST_CASE("observers see what the hosts send, and what passes each cable") {
  const auto options = switched();
  world().reset(options);
  std::vector<std::size_t> sent;
  std::size_t to_switch = 0, from_switch = 0;
  world().observe_frames([&](const model::FrameRecord& record) { sent.push_back(record.from); });
  world().observe_cables([&](std::size_t port, const model::FrameRecord& record) {
    CHECK((port == 1) == (record.from == 0));
    ++(record.from == 0 ? to_switch : from_switch);
  });
  world().add_app(1, "send", [](Host& host) {
    host.device().write64(kSend, 200);
    host.device().elapse(2'000);
  });
  world().run();
  CHECK(sent == std::vector<std::size_t>{1});
  CHECK(to_switch == 1);
  CHECK(from_switch == options.hosts - 1);
  world().observe_frames({});
  world().observe_cables({});
}

TEST_CASE("faults and times of the cables: of all, or of one host") {
  auto options = switched();
  options.wire.faults[0].drop = 1;  // of what hosts send
  options.each_wire[1].emplace();
  options.each_wire[1]->faults[1].duplicate = 1;  // of what the switch sends to host 1
  world().reset(options);
  for (std::size_t index = 0; index < 2; ++index) {
    world().add_app(index, "send", [](Host& host) {
      host.device().write64(kSend, 200);
      host.device().elapse(2'000);
    });
  }
  world().run();
  CHECK(world().ethernet_switch().statistics(0).received == 0);
  CHECK(world().ethernet_switch().statistics(1).received == 1);
  options.wire.faults = {};
  world().reset(options);
  world().add_app(0, "send", [](Host& host) {
    host.device().write64(kSend, 200);
    host.device().elapse(2'000);
    CHECK(frames(world().host(1)) == 2);
    if (world().hosts() > 2) CHECK(frames(world().host(2)) == 1);
  });
  world().run();
}

TEST_CASE("each cable has random choices of its own") {
  auto options = switched();
  options.wire.faults[0].drop = 0.5;
  world().reset(options);
  std::vector<std::vector<bool>> lost(options.hosts);
  world().observe_frames([&](const model::FrameRecord& record) { lost[record.from].push_back(record.faults != 0); });
  for (std::size_t index = 0; index < options.hosts; ++index) {
    world().add_app(index, "send", [](Host& host) {
      for (int i = 0; i < 30; ++i) {
        host.device().write64(kSend, 100);
        host.device().elapse(1'000);
      }
    });
  }
  world().run();
  for (const auto& of_host : lost) CHECK(of_host.size() == 30);
  CHECK(std::set(lost.begin(), lost.end()).size() == options.hosts);
  world().observe_frames({});
}

TEST_CASE("violations are looked for at every host") {
  const auto options = switched();
  for (const std::size_t index : {std::size_t{0}, options.hosts - 1}) {
    world().reset(options);
    world().add_app(index, "stray", [](Host& host) {
      const DmaBuffer buffer = host.device().dma_alloc(4096).take();
      copy(host.device(), buffer.iova, 0x5000, 1);
    });
    CHECK_THROWS_WITH(world().run(), Contains("host" + std::to_string(index)) && Contains("write of 0x5000"));
  }
}

TEST_CASE("a hang is found, and every host is in its message; frames in the switch are none") {
  auto options = switched();
  options.hang_ns = 100'000;
  world().reset(options);
  const std::size_t last = options.hosts - 1;
  world().add_app(last, "stuck", [](Host& host) {
    host.device().write64(kSend, 200);
    for (;;) host.device().elapse(1'000);
  });
  try {
    world().run();
    FAIL("no hang");
  } catch (const testbench::Hang& hang) {
    const std::string text = hang.what();
    INFO(text);
    for (std::size_t i = 0; i < options.hosts; ++i)
      CHECK_THAT(text, Contains("\n  host" + std::to_string(i) + ": DMA reads 0"));
    CHECK_THAT(text, Contains("host" + std::to_string(last) + "/stuck") && Contains("the switch sent it 1 frames"));
  }
  // A frame waits in the switch for longer than nothing may move.
  options.ethernet_switch.latency_ns = 1'000'000;
  world().reset(options);
  world().add_app(0, "sends", [](Host& host) { host.device().write64(kSend, 200); });
  world().add_app(1, "waits", [](Host& host) {
    while (host.device().now_ns() < 1'050'000) host.device().elapse(1'000);
    CHECK(frames(host) == 1);
  });
  CHECK_NOTHROW(world().run());
  // One is held on the cable from the switch.
  model::WireRule hold;
  hold.fault = model::WireFault::kReorder;
  hold.parameters.reorder_hold_ns = 1'000'000;
  options.ethernet_switch.latency_ns = 0;
  options.wire.faults[1].rules = {hold};
  world().reset(options);
  world().add_app(0, "sends", [](Host& host) { host.device().write64(kSend, 200); });
  world().add_app(1, "waits", [](Host& host) {
    while (host.device().now_ns() < 1'050'000) host.device().elapse(1'000);
    CHECK(frames(host) == 1);
    while (host.device().now_ns() < 2'000'000) host.device().elapse(1'000);
  });
  CHECK_THROWS_WITH(world().run(), Contains("host1/waits") && Contains("wire from the switch reorder 1"));
}

TEST_CASE("the waves of each host have a file of their own") {
  auto options = switched();
  const auto folder = std::filesystem::temp_directory_path() / ("rnic_switched_waves" + std::to_string(options.hosts));
  std::filesystem::create_directories(folder);
  options.trace_path = (folder / "waves.fst").string();
  world().reset(options);
  world().add_app(0, "works", [](Host& host) { host.device().elapse(1'000); });
  world().run();
  world().reset(switched());
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".fst") files.insert(entry.path().filename().string());
  }
  std::set<std::string> expected{"waves.fst"};
  for (std::size_t i = 1; i < options.hosts; ++i) expected.insert("waves.host" + std::to_string(i) + ".fst");
  CHECK(files == expected);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a world keeps its hosts and its switch") {
  auto options = switched();
  for (const std::size_t hosts : {std::size_t{0}, std::size_t{1}, options.hosts + 1, std::size_t{17}}) {
    auto other = options;
    other.hosts = hosts;
    CHECK_THROWS_AS(world().reset(other), std::invalid_argument);
  }
  options.hosts = 2;
  options.switched = false;
  CHECK_THROWS_AS(world().reset(options), std::invalid_argument);
  CHECK_THROWS_WITH(world().wire(), Contains("switch"));
  CHECK_THROWS_AS(world().host(world().hosts()), std::out_of_range);
  CHECK_NOTHROW(world().reset(switched()));
}
