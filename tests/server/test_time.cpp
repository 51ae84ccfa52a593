#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using namespace std::chrono_literals;
using test::RemotePeer;
using test::ServerProcess;

// How time passes in a machine that runs by itself: docs/server.md, Time.

namespace {

/// Processor time of a process, in ticks of the system (0.01 s).
long processor_ticks(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string word;
  long user = 0, system = 0;
  for (int i = 1; i < 14; ++i) file >> word;  // the name has no blanks
  file >> user >> system;
  return user + system;
}

struct OnePeer {
  explicit OnePeer(const std::vector<std::string>& arguments = {}) : server(arguments) {}
  ServerProcess server;
  /// Until everything that its coming brought about has come to rest.
  void let_rest() { std::this_thread::sleep_for(300ms); }
};

}  // namespace

TEST_CASE("a machine in which nothing is under way costs nothing") {
  OnePeer one;
  RemotePeer a(one.server.socket(0), 0), b(one.server.socket(1), 1);
  a.connect(b.address());
  b.connect(a.address());
  one.let_rest();
  const long before = processor_ticks(one.server.process());
  std::this_thread::sleep_for(1s);
  CHECK(processor_ticks(one.server.process()) - before <= 2);
}

TEST_CASE("a program that polls in vain costs the machine nothing, and itself little") {
  OnePeer one;
  RemotePeer a(one.server.socket(0), 0);
  one.let_rest();
  const long before = processor_ticks(one.server.process());
  const auto begin = std::clock();
  const auto end = std::chrono::steady_clock::now() + 1s;
  std::array<umd::Completion, 1> completion;
  while (std::chrono::steady_clock::now() < end) CHECK(a.cq().poll(completion) == 0);
  CHECK(processor_ticks(one.server.process()) - before <= 2);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 0.5);
}

TEST_CASE("the clock of a process goes on while the machine stands still, and never back") {
  OnePeer one;
  RemotePeer a(one.server.socket(0), 0);
  one.let_rest();
  Machine& machine = a.node().machine();
  std::uint64_t last = machine.now_ns();
  const std::uint64_t first = last;
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(2ms);
    static_cast<void>(a.context().port().call(calls::QueryPort{}).ok());
    const std::uint64_t now = machine.now_ns();
    CHECK(now >= last);
    last = now;
  }
  CHECK(last - first >= 80'000'000);
  // Also not for who looks all the time, while the machine moves and rests by turns, and is slower than time outside.
  std::atomic<bool> over = false;
  std::uint64_t backwards = 0;
  std::thread looking([&] {
    for (std::uint64_t before = machine.now_ns(); !over;) {
      const std::uint64_t now = machine.now_ns();
      if (now < before) ++backwards;
      before = now;
    }
  });
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(200us);
    static_cast<void>(a.context().port().call(calls::AllocPd{}).ok());
  }
  over = true;
  looking.join();
  CHECK(backwards == 0);
  const std::uint64_t seen = machine.wake_count();
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(machine.wait(seen, 50'000'000));
  CHECK(std::chrono::steady_clock::now() - begin >= 45ms);
}

TEST_CASE("a deadline comes no sooner than outside, and it does come") {
  OnePeer one;
  RemotePeer a(one.server.socket(0), 0), b(one.server.socket(1), 1);
  // Its peer does not know of it, and drops what it sends: 8 times 67 ms (4.096 us * 2^14), and the NIC gives up.
  a.connect(b.address());
  const std::array segments{a.segment(0, 8)};
  const auto begin = std::chrono::steady_clock::now();
  a.post({.opcode = hw::WqeOpcode::kWrite,
          .id = 1,
          .segments = segments,
          .remote_address = b.address().memory,
          .remote_key = b.address().key});
  CHECK(a.wait().status == hw::CqeStatus::kRetryExcErr);
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(took >= 500ms);
  CHECK(took < 5s);
}

TEST_CASE("a machine that is paused does nothing until it is let go on") {
  OnePeer one({"--pause"});
  std::atomic<bool> came = false;
  std::thread peer([&] {
    RemotePeer a(one.server.socket(0), 0);
    came = true;
  });
  std::this_thread::sleep_for(300ms);
  CHECK_FALSE(came);
  kill(one.server.process(), SIGUSR1);
  peer.join();
  CHECK(came);
  kill(one.server.process(), SIGUSR1);
  CHECK(one.server.end(SIGTERM) == 0);
}
