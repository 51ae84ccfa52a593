// Programs of NetworkDirect in simulated time, two of them in lockstep: the same source as tests/nd2 runs in processes.
#include <catch2/catch.hpp>

#include <vector>

#include "driver/win32/waitable.hpp"
#include "testbench/management_thread.hpp"
#include "testbench/nd2_programs.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::ManagementThread;
using testbench::Nd2Programs;

int nd2_main(int count, char* arguments[]);

namespace {

constexpr std::uint64_t kGenerousNs = 30'000'000'000;

/// Runs the program with `arguments`; its exit code.
int run_program(Nd2Programs& programs, Endpoint& on, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "nd2_program");
  std::vector<char*> pointers;
  for (auto& one : arguments) pointers.push_back(one.data());
  int code = -1;
  programs.run(on.kernel().node(), [&] { code = nd2_main(static_cast<int>(pointers.size()), pointers.data()); });
  return code;
}

kmd::Gid gid_of(std::uint8_t number) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, number}; }

}  // namespace

TEST_CASE("two programs on two hosts in lockstep") {
  auto options = WorldOptions::from_environment("nd2_programs");
  options.hang_ns = kGenerousNs;
  World& world = fresh_world(options);
  Nd2Programs programs;
  int codes[] = {-1, -1};
  unsigned ended = 0;
  for (std::uint8_t i = 0; i < 2; ++i) {
    world.add_app(i, "program", [&, i](Host& host) {
      Endpoint endpoint(host);
      const auto peer = static_cast<std::uint8_t>(2 - i);
      REQUIRE(endpoint.kernel().port_tables().add_neighbour(gid_of(peer), 0x0200'0000'0000ULL + peer).ok());
      const ManagementThread management(endpoint.kernel(), host.device());
      if (i == 1) host.device().elapse(5'000'000);  // the server listens by then
      codes[i] = run_program(programs, endpoint, {i == 0 ? "server" : "client", "10.0.0.1"});
      ++ended;
      // The peer may need an answer of ours.
      while (ended != 2) host.device().elapse(100'000);
      host.device().elapse(1'000'000);
    });
  }
  world.run(kGenerousNs);
  CHECK(codes[0] == 0);
  CHECK(codes[1] == 0);
}

TEST_CASE("times, waits and threads of a program in simulated time are the machine's") {
  World& world = fresh_world(WorldOptions::from_environment("nd2_programs"));
  Nd2Programs programs;
  world.add_app(0, "program", [&](Host& host) {
    Endpoint endpoint(host);
    programs.run(endpoint.kernel().node(), [&] {
      const std::uint64_t begin = host.device().now_ns();
      CHECK(win32::surroundings().now_ns() == begin);
      win32::Event event(true);
      bool inside = false;
      REQUIRE(win32::surroundings().start_thread([&] {
        inside = nd2::framework().startup() == ND_SUCCESS;
        CHECK(nd2::framework().cleanup() == ND_SUCCESS);
        event.set();
      }));
      CHECK(event.wait(1'000'000'000));
      CHECK(inside);
      event.reset();
      CHECK_FALSE(event.wait(2'000'000));
      CHECK(host.device().now_ns() - begin >= 2'000'000);
      CHECK(host.device().now_ns() - begin < 4'000'000);
    });
  });
  world.run(kGenerousNs);
}
