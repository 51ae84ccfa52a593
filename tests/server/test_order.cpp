#include <catch2/catch.hpp>

#include <chrono>
#include <thread>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "tests/server/raw_peer.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using remote::FrameKind;
using test::RawPeer;
using test::ServerProcess;

// Of doorbells and calls: docs/server.md, Calls.

TEST_CASE("what a process has rung before it asks leaves before its question is heard") {
  ServerProcess server;
  for (int round = 0; round < 60; ++round) {
    RawPeer peer(server.socket(0));
    const auto opened = peer.open();
    // The machine is about to hear questions of this process when it rings and asks for its end: the page is its own no
    // more then, and a doorbell that is taken behind the end would end the connection.
    constexpr unsigned kQuestions = 100;
    const calls::MemoryRange nothing{.region = 0xFFFF, .offset = 0, .bytes = 8};
    for (unsigned i = 0; i < kQuestions; ++i)
      REQUIRE(peer.send(FrameKind::kMap, peer.client(), std::as_bytes(std::span(&nothing, 1))));
    std::this_thread::sleep_for(std::chrono::microseconds(round * 5));
    peer.ring(std::uint64_t{opened.uar} * hw::kUarPageBytes + hw::uar::kCqDoorbell, 8);
    REQUIRE(peer.send(FrameKind::kClose, peer.client()));
    for (unsigned i = 0; i < kQuestions; ++i) {
      const auto answer = peer.answer();
      REQUIRE(answer);
      CHECK(answer->header.status == calls::Status::kAccessViolation);
    }
    const auto closed = peer.answer();
    REQUIRE(closed);
    CHECK(closed->header.status == calls::Status::kSuccess);
    REQUIRE(peer.send(FrameKind::kOpen));
    CHECK(peer.answer());
  }
}
