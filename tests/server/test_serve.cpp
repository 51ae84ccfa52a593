#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>

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
