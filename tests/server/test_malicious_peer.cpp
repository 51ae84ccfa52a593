#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <random>
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
