#include <catch2/catch.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <span>
#include <thread>
#include <vector>

#include "testbench/server/event_log_reader.hpp"
#include "tests/server/log_file.hpp"
#include "tests/server/raw_peer.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using remote::FrameHeader;
using remote::FrameKind;
using test::RawPeer;
using test::ServerProcess;
using testbench::LogKind;

// Connections take turns: docs/server.md, Calls. The event log has the order.

TEST_CASE("many requests of a connection, each of which fails at once, are served in turns with those of others") {
  const test::LogFile log;
  ServerProcess server({"--log", log.path()});
  // Whatever the order of turns, one of the others comes behind the greedy one.
  RawPeer before(server.socket(0)), greedy(server.socket(0)), behind(server.socket(0));
  for (auto* peer : {&before, &greedy, &behind}) static_cast<void>(peer->open());
  const auto answered = [](const RawPeer& peer, int ms) {
    pollfd what{.fd = peer.socket(), .events = POLLIN, .revents = 0};
    return ::poll(&what, 1, ms) == 1;
  };
  constexpr std::size_t kMany = 200;  // of a client that there is not; the answers fit into the socket
  constexpr std::uint32_t kStranger = 77, kTurn = 64;
  kill(server.process(), SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::array<FrameHeader, kMany> requests{};
  for (auto& one : requests) one = {.bytes = 0, .kind = FrameKind::kClose, .number = 1, .client = kStranger};
  REQUIRE(remote::send_all(greedy.socket(), std::as_bytes(std::span(requests))));
  for (auto* peer : {&before, &behind}) REQUIRE(peer->send(FrameKind::kClose, kStranger));
  REQUIRE_FALSE(answered(greedy, 100));  // it is paused
  kill(server.process(), SIGUSR1);
  for (auto* peer : {&before, &behind}) CHECK(peer->answer()->header.status == calls::Status::kNotFound);
  for (std::size_t i = 0; i < kMany; ++i) REQUIRE(greedy.answer());
  CHECK(server.end(SIGTERM) == 0);

  testbench::EventLogReader reader(log.path());
  std::map<std::uint64_t, std::size_t> served;  // by session
  std::vector<std::uint64_t> order;
  while (reader.peek() != nullptr) {
    const auto record = reader.take();
    if (record.kind == LogKind::kRequest && record.client == kStranger) {
      order.push_back(record.session);
      ++served[record.session];
    }
  }
  REQUIRE(served.size() == 3);
  REQUIRE(order.size() == kMany + 2);
  const auto of_greedy = std::find_if(served.begin(), served.end(), [](const auto& one) { return one.second != 1; });
  REQUIRE(of_greedy != served.end());
  std::size_t ahead = 0;
  for (const auto session : order) {
    if (session == of_greedy->first)
      ++ahead;
    else
      CHECK(ahead <= kTurn);
  }
}
