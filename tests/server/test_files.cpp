#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "testbench/wave_views.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using test::RemotePeer;
using test::ServerProcess;

// Files of a run that goes on: docs/debugging.md.

TEST_CASE("capture and waves hold what has been while a machine stands still") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "rnic_test_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto waves = folder / "waves.fst", capture = folder / "wire.pcap";
  ServerProcess server(
      {"--trace", waves.string(), "--trace-scope", "rnic_top.u_send_side:2", "--pcap", capture.string()});
  RemotePeer a(server.socket(0), 0), b(server.socket(1), 1);
  const auto to_a = a.address(), to_b = b.address();
  a.connect(to_b);
  b.connect(to_a);
  const std::array segments{a.segment(0, 4'000)};
  a.post({.opcode = hw::WqeOpcode::kWrite,
          .id = 1,
          .segments = segments,
          .remote_address = to_b.memory,
          .remote_key = to_b.key});
  REQUIRE(a.poll().status == hw::CqeStatus::kSuccess);
  // Nobody speaks to the machine: as when a program stands at a breakpoint.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto there = [&] {
    return std::filesystem::file_size(capture) > 4'000 && testbench::traced_signals(waves) > 10 &&
           std::filesystem::exists(folder / "waves.gtkw");
  };
  while (!there() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(std::filesystem::file_size(capture) > 4'000);
  CHECK(testbench::traced_signals(waves) > 10);
  CHECK(std::filesystem::exists(folder / "waves.gtkw"));
  CHECK(server.end(SIGTERM) == 0);
  std::filesystem::remove_all(folder);
}
