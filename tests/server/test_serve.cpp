#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "driver/remote/attach.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using test::RemotePeer;
using test::ServerProcess;

// Programs on the hosts of a machine that is a process of its own: docs/server.md.

namespace {

struct TwoPeers {
  ServerProcess server;
  RemotePeer a{server.socket(0), 0};
  RemotePeer b{server.socket(1), 1};

  TwoPeers() {
    const auto to_a = a.address(), to_b = b.address();
    a.connect(to_b);
    b.connect(to_a);
  }
  umd::SendRequest write(std::uint64_t id, std::span<const umd::Segment> segments, std::uint32_t offset) {
    return {.opcode = hw::WqeOpcode::kWrite,
            .id = id,
            .segments = segments,
            .remote_address = b.address().memory + offset,
            .remote_key = b.address().key};
  }
};

}  // namespace

TEST_CASE("a process writes to memory of a process on another host") {
  TwoPeers two;
  for (std::size_t i = 0; i < RemotePeer::kBytes; ++i) two.a.memory()[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  const std::array segments{two.a.segment(3, 60'001)};
  two.a.post(two.write(11, segments, 5));
  const auto completion = two.a.poll();
  CHECK(completion.id == 11);
  CHECK(completion.status == hw::CqeStatus::kSuccess);
  CHECK(std::memcmp(two.b.memory() + 5, two.a.memory() + 3, 60'001) == 0);
  CHECK(std::count(two.b.memory(), two.b.memory() + 5, 0) == 5);
  CHECK(std::count(two.b.memory() + 60'006, two.b.memory() + RemotePeer::kBytes, 0) ==
        static_cast<std::ptrdiff_t>(RemotePeer::kBytes - 60'006));
}

TEST_CASE("a process waits for a message without polling") {
  TwoPeers two;
  two.b.post_receive(5, 100, 4096);
  std::uint64_t sent = 0;
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::memcpy(two.a.memory(), "a message", 9);
    const std::array segments{two.a.segment(0, 9)};
    two.a.post({.opcode = hw::WqeOpcode::kSend, .id = 6, .segments = segments});
    sent = two.a.wait().id;
  });
  const auto completion = two.b.wait();
  sender.join();
  CHECK(sent == 6);
  CHECK(completion.id == 5);
  CHECK(completion.kind == umd::RequestKind::kReceive);
  CHECK(completion.byte_count == 9);
  CHECK(std::memcmp(two.b.memory() + 100, "a message", 9) == 0);
}

TEST_CASE("reads and atomics reach a process of another host") {
  TwoPeers two;
  for (unsigned i = 0; i < 5'000; ++i) two.b.memory()[i] = static_cast<std::uint8_t>(i * 13);
  const auto to = two.b.address();
  const std::array whole{two.a.segment(1, 5'000)};
  two.a.post(
      {.opcode = hw::WqeOpcode::kRead, .id = 1, .segments = whole, .remote_address = to.memory, .remote_key = to.key});
  CHECK(two.a.poll().status == hw::CqeStatus::kSuccess);
  CHECK(std::memcmp(two.a.memory() + 1, two.b.memory(), 5'000) == 0);
  std::uint64_t before = 0x1'0000'0005, after = 0;
  std::memcpy(two.b.memory() + 8, &before, sizeof before);
  const std::array word{two.a.segment(64, 8)};
  two.a.post({.opcode = hw::WqeOpcode::kFetchAdd,
              .id = 2,
              .segments = word,
              .remote_address = to.memory + 8,
              .remote_key = to.key,
              .swap_add = 7});
  CHECK(two.a.poll().status == hw::CqeStatus::kSuccess);
  std::memcpy(&after, two.b.memory() + 8, sizeof after);
  CHECK(after == before + 7);
  std::memcpy(&after, two.a.memory() + 64, sizeof after);
  CHECK(after == before);
}

TEST_CASE("several threads of a process post and call at once") {
  TwoPeers two;
  constexpr unsigned kThreads = 4, kEach = 100;
  std::atomic<unsigned> done = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < kEach; ++i) {
        two.a.memory()[t * 1000 + i] = static_cast<std::uint8_t>(t * 50 + i + 1);
        const std::array segments{two.a.segment(t * 1000 + i, 1)};
        const auto request = two.write(t, segments, t * 1000 + i);
        while (!two.a.qp().post_send(request)) std::this_thread::yield();
        if (i % 10 == 0) {
          const auto region = two.a.context().create_mr({.address = two.a.memory() + 4096 * t, .length = 64});
          if (!region) ++done;
        }
      }
    });
  }
  unsigned completed = 0, failed = 0;
  while (completed < kThreads * kEach) {
    completed += static_cast<unsigned>(two.a.cq().poll(
        16, [&](const umd::Completion& completion) { failed += completion.status != hw::CqeStatus::kSuccess; }));
  }
  for (auto& thread : threads) thread.join();
  CHECK(failed == 0);
  CHECK(done == 0);
  for (unsigned t = 0; t < kThreads; ++t)
    CHECK(std::memcmp(two.a.memory() + t * 1000, two.b.memory() + t * 1000, kEach) == 0);
}

TEST_CASE("a region is of what the process has, and may write") {
  ServerProcess server;
  RemotePeer peer(server.socket(0), 0);
  constexpr std::size_t kPage = 4096;
  auto* const pages =
      static_cast<std::uint8_t*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(mprotect(pages + kPage, kPage, PROT_READ) == 0);
  REQUIRE(munmap(pages + 2 * kPage, kPage) == 0);
  const auto made = [&](std::size_t offset, std::size_t length, bool write) {
    const auto region = peer.context().create_mr({.address = pages + offset, .length = length, .local_write = write});
    return region ? Result<void>() : region.error();
  };
  CHECK(made(10, 2 * kPage - 10, false).ok());
  CHECK(made(10, kPage - 10, true).ok());
  CHECK(made(10, kPage, true).error() == Error::kAccessViolation);
  CHECK(made(kPage, kPage + 1, false).error() == Error::kAccessViolation);
  CHECK(made(2 * kPage, 1, false).error() == Error::kAccessViolation);
  munmap(pages, 2 * kPage);
}

TEST_CASE("memory that its process has given up is an error of its requests alone") {
  TwoPeers two;
  constexpr std::size_t kPage = 4096;
  auto* const page =
      static_cast<std::uint8_t*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto region = two.a.context().create_mr({.address = page, .length = kPage, .local_write = true}).take();
  munmap(page, kPage);
  const std::array gone{
      umd::Segment{.address = reinterpret_cast<std::uint64_t>(page), .length = 100, .key = region->key()}};
  two.a.post(two.write(1, gone, 0));
  CHECK(two.a.poll().status != hw::CqeStatus::kSuccess);
  // Others of the machine go on, and the machine does not call it a fault of its NIC.
  RemotePeer c(two.server.socket(0), 0), d(two.server.socket(1), 1);
  c.connect(d.address());
  d.connect(c.address());
  const std::array segments{c.segment(0, 64)};
  c.post({.opcode = hw::WqeOpcode::kWrite,
          .id = 2,
          .segments = segments,
          .remote_address = d.address().memory,
          .remote_key = d.address().key});
  CHECK(c.poll().status == hw::CqeStatus::kSuccess);
  CHECK(two.server.end(SIGTERM) == 0);
}

TEST_CASE("a machine that ends tells its processes, and one that is killed leaves none waiting") {
  const int signal = GENERATE(SIGTERM, SIGINT, SIGKILL);
  CAPTURE(signal);
  TwoPeers two;
  const int channel = two.a.context().port().descriptor(two.a.context().channel()).take();
  pollfd what{.fd = channel, .events = POLLIN, .revents = 0};
  CHECK(poll(&what, 1, 0) == 0);
  bool failed = false;
  std::thread waiter([&] {
    try {
      two.b.wait();
    } catch (const std::runtime_error&) {
      failed = true;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(two.server.end(signal) == (signal == SIGKILL ? 128 + SIGKILL : 0));
  waiter.join();
  CHECK(failed);
  CHECK(two.a.context().port().call(calls::AllocPd{}).error() == Error::kDeviceFailed);
  CHECK(two.a.node().machine().removed());
  CHECK(poll(&what, 1, 5'000) == 1);  // who waits for an event is not left alone
  close(channel);
  const std::array segments{two.a.segment(0, 8)};
  for (int i = 0; i < 3'000; ++i) static_cast<void>(two.a.qp().post_send(two.write(1, segments, 0)).ok());
}

TEST_CASE("a channel's descriptor can be read while events wait") {
  TwoPeers two;
  const int channel = two.b.context().port().descriptor(two.b.context().channel()).take();
  pollfd what{.fd = channel, .events = POLLIN, .revents = 0};
  two.b.cq().arm(hw::CqArm::kAny);
  two.b.post_receive(1, 0, 64);
  CHECK(poll(&what, 1, 50) == 0);
  const std::array segments{two.a.segment(0, 8)};
  two.a.post({.opcode = hw::WqeOpcode::kSend, .id = 6, .segments = segments});
  CHECK(poll(&what, 1, 10'000) == 1);
  CHECK(two.b.context().take_events() >= 1);
  CHECK(poll(&what, 1, 0) == 0);
  close(channel);
}

TEST_CASE("a child of fork has not its parent's device") {
  TwoPeers two;
  const pid_t child = test::in_child(
      [&] { return two.a.context().port().call(calls::AllocPd{}).error() == Error::kDeviceFailed ? 0 : 1; });
  CHECK(test::exit_of(child) == 0);
  const std::array segments{two.a.segment(0, 8)};
  two.a.post(two.write(1, segments, 0));
  CHECK(two.a.poll().status == hw::CqeStatus::kSuccess);
}

TEST_CASE("what a process had is given back, however it ends") {
  ServerProcess server;
  // Together more than the device has.
  constexpr unsigned kProcesses = 60, kPeers = 8;
  for (unsigned i = 0; i < kProcesses; ++i) {
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    const pid_t child = test::in_child([&] {
      std::vector<std::unique_ptr<RemotePeer>> peers;
      for (unsigned k = 0; k < kPeers; ++k) {
        peers.push_back(std::make_unique<RemotePeer>(server.socket(0), 0));
        peers.back()->post_receive(1, 0, 64);
      }
      for (unsigned k = 0; k < kPeers; k += 2) {
        peers[k]->connect(peers[k + 1]->address());
        peers[k + 1]->connect(peers[k]->address());
      }
      const char byte = 0;
      if (write(ends[1], &byte, 1) != 1) return 1;
      if (i % 2 == 0) pause();
      return 0;
    });
    close(ends[1]);  // so that the end of a child that failed is seen
    char byte{};
    CAPTURE(i);
    REQUIRE(read(ends[0], &byte, 1) == 1);
    if (i % 2 == 0) kill(child, SIGKILL);
    CHECK(test::exit_of(child) == (i % 2 == 0 ? 128 + SIGKILL : 0));
    close(ends[0]);
  }
  CHECK(server.end(SIGTERM) == 0);
}
