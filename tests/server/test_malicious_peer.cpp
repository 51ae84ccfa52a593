#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "driver/remote/connection_memory.hpp"
#include "driver/remote/protocol.hpp"
#include "tests/server/raw_peer.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using remote::FrameHeader;
using remote::FrameKind;
using test::RawPeer;
using test::RemotePeer;
using test::ServerProcess;

// Processes that break the protocol lose their connection, and nothing else happens: docs/server.md.

namespace {

std::vector<std::byte> noise(std::mt19937& random, std::size_t bytes) {
  std::vector<std::byte> some(bytes);
  for (auto& byte : some) byte = static_cast<std::byte>(random());
  return some;
}

}  // namespace

TEST_CASE("a machine refuses what is not its protocol, and lives") {
  ServerProcess server;
  const std::string path = server.socket(0);
  {
    INFO("another magic number");
    RawPeer peer(path);
    CHECK(peer.hello({.magic = 0x12345678}));
    CHECK(peer.ended());
  }
  {
    INFO("another version is refused with a word");
    RawPeer peer(path);
    CHECK(peer.hello({.version = remote::kProtocolVersion + 1}));
    const auto answer = peer.answer();
    REQUIRE(answer);
    CHECK(answer->header.status == calls::Status::kVersionMismatch);
    CHECK(peer.ended());
  }
  {
    INFO("something else before the hello");
    RawPeer peer(path);
    CHECK(peer.send(FrameKind::kOpen));
    CHECK(peer.ended());
  }
  {
    INFO("a hello that comes twice");
    RawPeer peer(path);
    CHECK(peer.hello());
    CHECK(peer.answer());
    CHECK(peer.hello());
    CHECK(peer.ended());
  }
  {
    INFO("a kind that there is not");
    RawPeer peer(path);
    peer.open();
    CHECK(peer.send(static_cast<FrameKind>(99)));
    CHECK(peer.ended());
  }
  for (const std::uint32_t claimed : {remote::kMostFrameBytes + 1, ~std::uint32_t{0}}) {
    INFO("a frame of " << claimed << " bytes");
    RawPeer peer(path);
    peer.open();
    CHECK(peer.send(FrameKind::kCall, 0, {}, claimed));
    CHECK(peer.ended());
  }
  {
    INFO("half a frame, and the end");
    RawPeer peer(path);
    peer.open();
    CHECK(peer.send(FrameKind::kCall, 0, {}, 100));
  }
  RemotePeer good(path, 0);
  CHECK(good.node().machine().removed() == false);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("what a client asks for wrongly is an error, and nothing else") {
  ServerProcess server;
  RawPeer peer(server.socket(0));
  const auto opened = peer.open();
  const auto status_of = [&](FrameKind kind, std::uint32_t client, std::span<const std::byte> body) {
    REQUIRE(peer.send(kind, client, body));
    const auto answer = peer.answer();
    REQUIRE(answer);
    CHECK_FALSE(answer->beside[0]);
    return answer->header.status;
  };
  const auto bytes = [](const auto& of) { return std::as_bytes(std::span(&of, 1)); };
  for (const std::uint32_t client : {peer.client() + 1, 63u, 64u, ~0u}) {
    CHECK(status_of(FrameKind::kCall, client, {}) == calls::Status::kNotFound);
    CHECK(status_of(FrameKind::kClose, client, {}) == calls::Status::kNotFound);
    CHECK(status_of(FrameKind::kMap, client, bytes(opened.status)) == calls::Status::kNotFound);
    CHECK(status_of(FrameKind::kDescriptor, client, bytes(opened.channel)) == calls::Status::kNotFound);
  }
  auto elsewhere = opened.status;
  elsewhere.region += 1000;
  CHECK(status_of(FrameKind::kMap, peer.client(), bytes(elsewhere)) == calls::Status::kAccessViolation);
  elsewhere = opened.status;
  elsewhere.bytes += 1;
  CHECK(status_of(FrameKind::kMap, peer.client(), bytes(elsewhere)) == calls::Status::kAccessViolation);
  elsewhere.offset = ~std::uint64_t{0};
  CHECK(status_of(FrameKind::kMap, peer.client(), bytes(elsewhere)) == calls::Status::kAccessViolation);
  CHECK(status_of(FrameKind::kMap, peer.client(), {}) == calls::Status::kInvalidParameter);
  const calls::Handle strange = opened.channel + 77;
  CHECK(status_of(FrameKind::kDescriptor, peer.client(), bytes(strange)) == calls::Status::kNotFound);
  CHECK(status_of(FrameKind::kDescriptor, peer.client(), {}) == calls::Status::kInvalidParameter);
  // One client is open; there is room for so many, and no more.
  for (std::size_t i = 1; i < remote::kMostClients; ++i) {
    CAPTURE(i);
    CHECK(status_of(FrameKind::kOpen, 0, {}) == calls::Status::kSuccess);
  }
  CHECK(status_of(FrameKind::kOpen, 0, {}) == calls::Status::kOutOfResources);
  CHECK(status_of(FrameKind::kClose, 5, {}) == calls::Status::kSuccess);
  CHECK(status_of(FrameKind::kClose, 5, {}) == calls::Status::kNotFound);
  CHECK(status_of(FrameKind::kOpen, 0, {}) == calls::Status::kSuccess);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a doorbell outside of the own page ends the connection") {
  ServerProcess server;
  RemotePeer good(server.socket(0), 0);
  const std::uint64_t page = hw::kUarPageBytes;
  const std::array<std::pair<std::int64_t, std::size_t>, 5> wrong{
      {{page, 8}, {-std::int64_t(page), 8}, {4, 8}, {8, 64}, {0, 16}}};
  for (const auto& [distance, bytes] : wrong) {
    CAPTURE(distance, bytes);
    RawPeer peer(server.socket(0));
    const auto opened = peer.open();
    peer.ring(opened.uar * page + static_cast<std::uint64_t>(distance), bytes);
    CHECK(peer.ended());
  }
  {
    INFO("the page of another");
    RawPeer peer(server.socket(0));
    peer.open();
    RawPeer other(server.socket(0));
    const auto theirs = other.open();
    peer.ring(theirs.uar * page, 8);
    CHECK(peer.ended());
    CHECK(other.send(FrameKind::kClose, other.client()));
    CHECK(other.answer()->header.status == calls::Status::kSuccess);
  }
  CHECK_FALSE(good.node().machine().removed());
  CHECK(good.context().usable());
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("noise in everything that a process shares with its machine") {
  ServerProcess server;
  std::mt19937 random(7);
  for (unsigned round = 0; round < 40; ++round) {
    CAPTURE(round);
    RawPeer peer(server.socket(round % 2));
    if (round % 4 == 0) {
      static_cast<void>(remote::send_all(peer.socket(), noise(random, 1 + random() % 300)));
      continue;
    }
    peer.open();
    if (round % 4 == 1) {
      // Kernel calls of noise with a true size: the connection stays.
      for (int i = 0; i < 20; ++i) {
        auto body = noise(random, sizeof(calls::RequestHeader) + random() % 120);
        const calls::RequestHeader header{.size = static_cast<std::uint32_t>(body.size()),
                                          .version = calls::kVersion,
                                          .call = static_cast<calls::Call>(random() % 50)};
        std::memcpy(body.data(), &header, sizeof header);
        REQUIRE(peer.send(FrameKind::kCall, peer.client(), body));
        REQUIRE(peer.answer());
      }
    } else if (round % 4 == 2) {
      auto* const bytes = reinterpret_cast<std::byte*>(&peer.memory());
      const auto some = noise(random, sizeof(remote::ConnectionMemory));
      std::memcpy(bytes, some.data(), some.size());
      static_cast<void>(peer.send(FrameKind::kClose, peer.client()));
    } else {
      // Requests without end, whose answers nobody reads.
      for (int i = 0; i < 20'000; ++i) {
        if (!peer.send(FrameKind::kClose, 50)) break;
        pollfd what{.fd = peer.socket(), .events = POLLRDHUP, .revents = 0};
        if (poll(&what, 1, 0) == 1 && (what.revents & POLLRDHUP) != 0) break;
      }
    }
  }
  RemotePeer a(server.socket(0), 0), b(server.socket(1), 1);
  const auto to_a = a.address(), to_b = b.address();
  a.connect(to_b);
  b.connect(to_a);
  a.memory()[0] = 99;
  const std::array segments{a.segment(0, 1)};
  a.post({.opcode = hw::WqeOpcode::kWrite,
          .id = 1,
          .segments = segments,
          .remote_address = to_b.memory,
          .remote_key = to_b.key});
  CHECK(a.poll().status == hw::CqeStatus::kSuccess);
  CHECK(b.memory()[0] == 99);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a bell whose ring is taken back keeps nobody waiting, whatever its flags say") {
  ServerProcess server;
  {
    RawPeer peer(server.socket(0));
    peer.open();
    peer.unblock_bell(false);
    // The machine looks between ring and reading, now and then.
    for (int i = 0; i < 50'000; ++i) {
      peer.ring_bell();
      peer.silence_bell();
    }
    peer.ring_bell();
    CHECK(peer.answers());
  }
  RemotePeer good(server.socket(0), 0);
  CHECK(good.context().usable());
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a process for which the machine has no descriptor is sent away at once, and the next one is taken") {
  ServerProcess server;
  // Numbers that are free between those that it has get used.
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 6; ++i) {
    peers.push_back(std::make_unique<RawPeer>(server.socket(0)));
    REQUIRE(peers.back()->hello());
    REQUIRE(peers.back()->answer());
  }
  rlim_t first_free = 0;
  const std::string all = "/proc/" + std::to_string(server.process()) + "/fd/";
  while (std::filesystem::is_symlink(all + std::to_string(first_free))) ++first_free;
  rlimit before{};
  REQUIRE(prlimit(server.process(), RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit now{.rlim_cur = first_free, .rlim_max = before.rlim_max};
  REQUIRE(prlimit(server.process(), RLIMIT_NOFILE, &now, nullptr) == 0);
  for (const std::string& path : {server.socket(0), server.socket(1), server.folder() + "/run/control"}) {
    RawPeer peer(path);
    CHECK(peer.ended());
  }
  REQUIRE(prlimit(server.process(), RLIMIT_NOFILE, &before, nullptr) == 0);
  RemotePeer good(server.socket(0), 0);
  CHECK(good.context().usable());
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("the end of a descriptor that a process sends along keeps nobody waiting") {
  const remote::Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr int kPassRights = 83;
  const int refuse = 0;
  if (setsockopt(probe.get(), SOL_SOCKET, kPassRights, &refuse, sizeof refuse) != 0) {
    WARN("the system lets nobody refuse descriptors");
    return;
  }
  ServerProcess server;
  // A connection that nobody reads, with data under way: its last owner waits in close for as long as it says.
  const remote::Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener.get(), 1) == 0);
  REQUIRE(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  remote::Descriptor lingers(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  static_cast<void>(connect(lingers.get(), reinterpret_cast<const sockaddr*>(&address), size));
  const remote::Descriptor other(accept(listener.get(), nullptr, nullptr));
  const std::vector<std::byte> much(std::size_t{1} << 20);
  while (send(lingers.get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  const linger wait{.l_onoff = 1, .l_linger = 60};
  REQUIRE(setsockopt(lingers.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait) == 0);
  RawPeer peer(server.socket(0));
  peer.open();
  const FrameHeader header{.bytes = 0, .kind = FrameKind::kClose, .number = 7, .client = 63};
  const std::array beside{lingers.get()};
  static_cast<void>(remote::send_all(peer.socket(), std::as_bytes(std::span(&header, 1)), beside));
  lingers = {};
  RawPeer next(server.socket(1));
  CHECK(next.hello());
  CHECK(next.answers());
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a stopped process holds up nobody, and goes on where it was") {
  ServerProcess server;
  std::array<int, 2> told{};
  REQUIRE(pipe(told.data()) == 0);
  const pid_t child = test::in_child([&] {
    RemotePeer a(server.socket(0), 0), b(server.socket(1), 1);
    const auto to_a = a.address(), to_b = b.address();
    a.connect(to_b);
    b.connect(to_a);
    for (std::uint64_t i = 0;; ++i) {
      const std::array segments{a.segment(0, 9000)};
      a.post({.opcode = hw::WqeOpcode::kWrite,
              .id = i,
              .segments = segments,
              .remote_address = to_b.memory,
              .remote_key = to_b.key});
      const char good = a.poll().status == hw::CqeStatus::kSuccess ? 1 : 0;
      if (write(told[1], &good, 1) != 1) return 1;
    }
  });
  const auto moves = [&](int times) {
    for (int i = 0; i < times; ++i) {
      pollfd what{.fd = told[0], .events = POLLIN, .revents = 0};
      char good{};
      if (poll(&what, 1, 10'000) != 1 || read(told[0], &good, 1) != 1 || good != 1) return false;
    }
    return true;
  };
  REQUIRE(moves(3));
  for (int round = 0; round < 3; ++round) {
    kill(child, SIGSTOP);
    RemotePeer a(server.socket(0), 0), b(server.socket(1), 1);
    const auto to_a = a.address(), to_b = b.address();
    a.connect(to_b);
    b.connect(to_a);
    const std::array segments{a.segment(0, 5000)};
    a.post({.opcode = hw::WqeOpcode::kRead,
            .id = 1,
            .segments = segments,
            .remote_address = to_b.memory,
            .remote_key = to_b.key});
    CHECK(a.poll().status == hw::CqeStatus::kSuccess);
    kill(child, SIGCONT);
    // Those that it had told before it stopped, and more.
    CHECK(moves(20));
  }
  kill(child, SIGSTOP);
  kill(child, SIGKILL);
  CHECK(test::exit_of(child) == 128 + SIGKILL);
  RemotePeer good(server.socket(0), 0);
  CHECK(good.context().usable());
  CHECK(server.end(SIGTERM) == 0);
  close(told[0]);
  close(told[1]);
}
