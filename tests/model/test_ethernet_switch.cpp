// A transparent bridge (IEEE 802.1D-2004): 7.5 reception, 7.7 forwarding, 7.8 learning, 7.9 filtering database,
// 7.12.6 reserved addresses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "model/timed_event.hpp"
#include "model/ethernet_switch.hpp"
#include "model/random.hpp"
#include "testbench/app_runner.hpp"

using namespace rnic::model;

namespace {

constexpr std::size_t kPorts = 4;
using Frame = std::vector<std::uint8_t>;

std::vector<WireOptions> cables(const WireOptions& each = {}) { return std::vector<WireOptions>(kPorts, each); }

struct Bench {
  rnic::testbench::AppRunner runner{"runner"};
  EthernetSwitch bridge{"switch", cables(), {}};
};
Bench& bench() {
  static Bench instance;
  return instance;
}
EthernetSwitch& bridge() { return bench().bridge; }

void start(const EthernetSwitchOptions& options = {}, const std::vector<WireOptions>& wires = cables()) {
  bridge().set_tap({});
  bridge().reset(wires, options);
}

void run(const std::function<void()>& body) {
  bench().runner.add("test", body);
  bench().runner.run(sc_core::sc_time(100, sc_core::SC_MS));
}

void wait_ns(double ns) { wait_until(time_in(from_ns(ns))); }

/// Station `number`, and groups.
constexpr std::uint64_t station(std::uint64_t number) { return 0x0200'0000'0000 + number; }
constexpr std::uint64_t kBroadcast = 0xFFFF'FFFF'FFFF, kMulticast = 0x0100'5E00'0001;

Frame frame(std::uint64_t to, std::uint64_t from, std::size_t bytes = 60, std::uint8_t mark = 0) {
  Frame all(bytes, mark);
  for (std::size_t i = 0; i < 6; ++i) {
    all[i] = static_cast<std::uint8_t>(to >> (40 - 8 * i));
    all[6 + i] = static_cast<std::uint8_t>(from >> (40 - 8 * i));
  }
  return all;
}

/// The station at `port` sends a frame, all its beats at once: its end of the wire takes them at their own time.
void send(std::size_t port, const Frame& bytes, bool bad = false) {
  for_each_beat(bytes, bad, [&](const FrameBeat& beat) { bridge().port(port).transmit(beat); });
}

struct Got {
  Frame bytes;
  bool bad;
};

/// The frames that have come to the station at `port`.
std::vector<Got> received(std::size_t port) {
  std::vector<Got> all;
  FrameBeat beat;
  Frame now;
  while (bridge().port(port).receive(beat)) {
    now.insert(now.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
    if (beat.last) all.push_back({std::exchange(now, {}), beat.err});
  }
  CHECK(now.empty());
  return all;
}

/// How many frames come to each port when the station at `port` sends one; long enough after each other that all have
/// come.
using Count = std::vector<std::size_t>;
Count ports_of(std::size_t port, const Frame& bytes, bool bad = false) {
  send(port, bytes, bad);
  wait_ns(1'000);
  Count count;
  for (std::size_t i = 0; i < kPorts; ++i) {
    const auto got = received(i);
    count.push_back(got.size());
    for (const auto& one : got) CHECK((one.bytes == bytes && !one.bad));
  }
  return count;
}

/// Polls each 10 ps; returns when the last beat of the next frame came.
Picoseconds arrival(std::size_t port) {
  FrameBeat beat;
  do {
    while (!bridge().port(port).receive(beat)) sc_core::wait(to_sc_time(10));
  } while (!beat.last);
  return now_ps();
}

}  // namespace

TEST_CASE("a frame for a station that is not known goes to all ports but its own (7.7.1 c, 7.9)") {
  start();
  run([] {
    for (std::size_t port = 0; port < kPorts; ++port) {
      Count all(kPorts, 1);
      all[port] = 0;
      CHECK(ports_of(port, frame(station(100), station(port), 60 + 500 * port)) == all);
      CHECK(bridge().statistics(port).flooded == 1);
    }
  });
}

TEST_CASE("a frame for a station that has sent goes to its port alone (7.8, 7.9)") {
  start();
  run([] {
    for (std::size_t port = 0; port < kPorts; ++port) {
      CHECK(bridge().port_of(station(port)) == std::nullopt);
      (void)ports_of(port, frame(kBroadcast, station(port)));
      CHECK(bridge().port_of(station(port)) == port);
    }
    for (std::size_t from = 0; from < kPorts; ++from) {
      for (std::size_t to = 0; to < kPorts; ++to) {
        Count one(kPorts, 0);
        one[to] = to == from ? 0 : 1;  // behind the port that it came from: filtered
        CHECK(ports_of(from, frame(station(to), station(from))) == one);
      }
      CHECK(bridge().statistics(from).flooded == 0);
      CHECK(bridge().statistics(from).filtered == 1);
    }
  });
}

TEST_CASE("stations share a port: what one of them sends to the other is filtered (7.7.1 c)") {
  start();
  run([] {
    (void)ports_of(2, frame(kBroadcast, station(7)));
    CHECK(ports_of(2, frame(station(7), station(8))) == Count{0, 0, 0, 0});
    CHECK(ports_of(0, frame(station(7), station(0))) == Count{0, 0, 1, 0});
    CHECK(ports_of(0, frame(station(8), station(0))) == Count{0, 0, 1, 0});
  });
}

TEST_CASE("group addresses go to all other ports, and are never learned (7.8)") {
  start();
  run([] {
    for (const auto group : {kBroadcast, kMulticast}) {
      CHECK(ports_of(1, frame(group, station(1))) == Count{1, 0, 1, 1});
      CHECK(ports_of(3, frame(station(1), group)) == Count{0, 1, 0, 0});  // from a group: nobody is one
      CHECK(bridge().port_of(group) == std::nullopt);
      CHECK(ports_of(1, frame(group, station(1))) == Count{1, 0, 1, 1});
    }
    CHECK(bridge().statistics(1).group == 4);
    CHECK(bridge().statistics(1).flooded == 0);
  });
}

TEST_CASE("frames for the bridge's own addresses go nowhere; their stations are learned (7.12.6)") {
  start();
  run([] {
    constexpr std::uint64_t kFirst = 0x0180'C200'0000;
    CHECK(ports_of(0, frame(kFirst, station(1))) == Count{0, 0, 0, 0});
    CHECK(ports_of(0, frame(kFirst + 1, station(2))) == Count{0, 0, 0, 0});  // PAUSE
    CHECK(ports_of(0, frame(kFirst + 15, station(3))) == Count{0, 0, 0, 0});
    CHECK(ports_of(0, frame(kFirst + 16, station(4))) == Count{0, 1, 1, 1});  // a group like others
    CHECK(ports_of(0, frame(kFirst - 1, station(5))) == Count{0, 1, 1, 1});
    CHECK(bridge().statistics(0).reserved == 3);
    for (std::uint64_t i = 1; i <= 5; ++i) CHECK(bridge().port_of(station(i)) == 0);
  });
}

TEST_CASE("a station that moves is found where it sent last (7.8)") {
  start();
  run([] {
    for (const std::size_t at : {0, 3, 1, 0}) {
      (void)ports_of(at, frame(kBroadcast, station(9)));
      Count one(kPorts, 0);
      one[at] = 1;
      CHECK(ports_of(2, frame(station(9), station(2))) == one);
    }
  });
}

TEST_CASE("a station that is silent for the ageing time is forgotten; each frame renews it (7.9.2)") {
  start({.ageing_ns = 50'000});
  run([] {
    (void)ports_of(1, frame(kBroadcast, station(1)));
    wait_ns(48'000);
    CHECK(ports_of(0, frame(station(1), station(0))) == Count{0, 1, 0, 0});
    (void)ports_of(1, frame(station(0), station(1)));
    wait_ns(46'000);
    CHECK(ports_of(0, frame(station(1), station(0))) == Count{0, 1, 0, 0});  // to it: renews nothing
    wait_ns(2'500);
    CHECK(ports_of(0, frame(station(1), station(0))) == Count{0, 1, 1, 1});
    CHECK(bridge().port_of(station(1)) == std::nullopt);
    CHECK(bridge().port_of(station(0)) == 0);
  });
}

TEST_CASE("by default a station is remembered for 300 s (table 7-5)") {
  CHECK(EthernetSwitchOptions{}.ageing_ns == 300e9);
}

TEST_CASE("a frame that is marked bad is dropped and teaches nothing (7.5)") {
  start();
  run([] {
    CHECK(ports_of(0, frame(station(5), station(0), 200), true) == Count{0, 0, 0, 0});
    CHECK(ports_of(0, frame(kBroadcast, station(0)), true) == Count{0, 0, 0, 0});
    CHECK(bridge().port_of(station(0)) == std::nullopt);
    CHECK(bridge().statistics(0).bad == 2);
    CHECK(bridge().statistics(0).received == 0);
    CHECK(ports_of(0, frame(kBroadcast, station(0))) == Count{0, 1, 1, 1});
  });
}

TEST_CASE("a frame leaves when it has come whole, after the latency of the switch; each cable has its own times") {
  auto wires = cables();
  wires[0].rate_gbps = 10;
  wires[0].delay_ns = 30;
  wires[1].delay_ns = 70;
  start({.latency_ns = 400}, wires);
  run([] {
    const Picoseconds begin = now_ps();
    send(0, frame(kBroadcast, station(0), 1500));
    // Preamble, frame and check sequence at 800 ps a byte, then at 80.
    const Picoseconds whole = 1512 * 800 + 30'000;
    CHECK(arrival(1) - begin == whole + 400'000 + 1512 * 80 + 70'000);
    wait_ns(1'000);
    (void)received(2);
    // The latency is that of each frame, not of the port: two in a row leave in a row.
    const Picoseconds again = now_ps();
    send(2, frame(station(0), station(2)));
    send(2, frame(station(0), station(2)));
    CHECK(arrival(0) - again == 72 * 80 + 400'000 + 72 * 800 + 30'000);
    CHECK(arrival(0) - again == 72 * 80 + 400'000 + (72 + 12 + 72) * 800 + 30'000);
  });
}

TEST_CASE("the frames from one port to another stay in order, and all of them come, back to back (7.7.3)") {
  WireOptions each;
  each.jitter_ns = 150;
  start({.latency_ns = 300}, cables(each));
  run([] {
    constexpr std::size_t kFrames = 200;
    send(3, frame(kBroadcast, station(3)));
    wait_ns(1'000);
    for (std::size_t i = 0; i < kPorts; ++i) (void)received(i);
    Random random(7, "order");
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < kFrames; ++i) {
      for (std::size_t from = 0; from < 3; ++from) {
        const std::size_t length = 60 + random.below(1400);
        bytes += length + 24;
        Frame next = frame(station(3), station(from), length);
        next[12] = static_cast<std::uint8_t>(i);
        send(from, next);
      }
    }
    const double line_ns = static_cast<double>(bytes) * 0.08;
    wait_ns(line_ns + 2'000);
    std::map<std::uint8_t, std::size_t> next;
    for (const auto& [got, bad] : received(3)) {
      CHECK(got[12] == next[got[11]]++);
      CHECK_FALSE(bad);
    }
    CHECK(next == std::map<std::uint8_t, std::size_t>{{0, kFrames}, {1, kFrames}, {2, kFrames}});
    CHECK(bridge().waiting() == 0);
    CHECK(bridge().statistics(3).sent == 3 * kFrames);
    CHECK(bridge().statistics(3).overflow == 0);
  });
}

TEST_CASE("a full buffer drops what does not fit any more, and counts it; other ports know nothing of it (7.7.3)") {
  start({.buffer_bytes = 2'000});
  run([] {
    for (std::size_t i = 0; i < kPorts; ++i) (void)ports_of(i, frame(kMulticast, station(i)));
    // Three ports send five frames of 1000 bytes to port 3 at once: of the first three two fit, one leaving and one
    // behind it. A frame takes as long to leave as to come, so of each three that come later the first fits.
    for (int i = 0; i < 5; ++i) {
      for (std::size_t from = 0; from < 3; ++from) send(from, frame(station(3), station(from), 1000));
      send(3, frame(station(0), station(3), 1000));
    }
    wait_ns(3'000);
    const auto got = received(3);
    std::vector<int> sources;
    for (const auto& one : got) sources.push_back(one.bytes[11]);
    CHECK(sources == std::vector<int>{0, 1, 0, 0, 0, 0});
    CHECK(std::all_of(got.begin(), got.end(), [](const Got& one) { return one.bytes.size() == 1000 && !one.bad; }));
    const auto& port = bridge().statistics(3);
    CHECK(port.overflow == 15 - 6);
    CHECK(port.most_bytes == 2'000);
    CHECK(received(0).size() == 5);
    CHECK(bridge().statistics(0).overflow == 0);
    CHECK(bridge().waiting() == 0);
    // A frame that is larger than the buffer never fits, whole or in part.
    CHECK(ports_of(0, frame(station(3), station(0), 2'001)) == Count{0, 0, 0, 0});
    CHECK(ports_of(0, frame(station(3), station(0), 2'000)) == Count{0, 0, 0, 1});
  });
}

TEST_CASE(
    "a port whose link goes down forgets its stations, drops what waits, and takes part in nothing (7.7.1 a, b)") {
  start({.buffer_bytes = 2'000});
  run([] {
    for (std::size_t i = 0; i < kPorts; ++i) (void)ports_of(i, frame(kMulticast, station(i)));
    // Two frames for port 1 at once, the second of which waits, when the link goes down.
    for (const std::size_t from : {0, 2}) send(from, frame(station(1), station(from), 1000));
    send(1, frame(kBroadcast, station(11), 2000));  // still on the cable
    wait_ns(100);
    CHECK(bridge().waiting() == 2);
    bridge().cable(1).set_link(false);
    CHECK(bridge().waiting() == 1);
    CHECK(bridge().statistics(1).unsent == 1);
    CHECK(bridge().port_of(station(1)) == std::nullopt);
    CHECK(bridge().port_of(station(0)) == 0);
    wait_ns(1'000);
    CHECK(received(1).size() == 1);  // that had begun to leave
    CHECK(received(0).empty());      // nothing of what came too late
    CHECK(bridge().statistics(1).late == 1);
    CHECK(bridge().port_of(station(11)) == std::nullopt);

    CHECK(ports_of(0, frame(kBroadcast, station(0))) == Count{0, 0, 1, 1});
    CHECK(ports_of(0, frame(station(1), station(0))) == Count{0, 0, 1, 1});
    CHECK(ports_of(1, frame(kBroadcast, station(1))) == Count{0, 0, 0, 0});
    CHECK(bridge().statistics(1).unsent == 3);

    bridge().cable(1).set_link(true);
    CHECK(ports_of(0, frame(station(1), station(0))) == Count{0, 1, 1, 1});
    CHECK(ports_of(1, frame(station(0), station(1))) == Count{1, 0, 0, 0});
    CHECK(ports_of(0, frame(station(1), station(0))) == Count{0, 1, 0, 0});
    // Its buffer is empty again.
    for (const std::size_t from : {0, 2}) send(from, frame(station(1), station(from), 1000));
    wait_ns(1'000);
    CHECK(received(1).size() == 2);
  });
}

TEST_CASE("faults of a cable hit what passes it, either way; a frame that is held comes when its time is over") {
  auto wires = cables();
  WireRule drop, hold;
  drop.count = 2;
  wires[0].faults[0].rules = {drop};
  wires[1].faults[1].rules = {drop};
  hold.fault = WireFault::kReorder;
  hold.parameters.reorder_hold_ns = 5'000;
  wires[2].faults[0].rules = {hold};
  start({}, wires);
  run([] {
    for (int i = 0; i < 2; ++i) CHECK(ports_of(0, frame(kBroadcast, station(0))) == Count{0, 0, 0, 0});
    CHECK(bridge().statistics(0).received == 0);
    CHECK(ports_of(0, frame(kBroadcast, station(0))) == Count{0, 0, 1, 1});
    CHECK(ports_of(0, frame(kBroadcast, station(0))) == Count{0, 0, 1, 1});
    CHECK(ports_of(0, frame(kBroadcast, station(0))) == Count{0, 1, 1, 1});
    const Picoseconds begin = now_ps();
    send(2, frame(station(0), station(2)));
    // Held from when it would have come; then it comes, and goes on.
    CHECK(arrival(0) - begin == 72 * 80 + from_ns(5'000) + 2 * 72 * 80);
  });
}

TEST_CASE("the tap sees each frame on each cable that it passes, as it was sent") {
  start();
  struct Seen {
    std::size_t port, from, bytes;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  Picoseconds newest = 0;
  bridge().set_tap([&](std::size_t port, const FrameRecord& record) {
    seen.push_back({port, record.from, record.bytes.size()});
    CHECK(record.end >= newest);
    newest = record.end;
  });
  run([] {
    (void)ports_of(0, frame(kBroadcast, station(0), 100));
    (void)ports_of(3, frame(station(0), station(3), 300));
  });
  CHECK(seen == std::vector<Seen>{{0, 0, 100}, {1, 1, 100}, {2, 1, 100}, {3, 1, 100}, {3, 0, 300}, {0, 1, 300}});
  seen.clear();
  bridge().set_tap({});
  run([] { (void)ports_of(0, frame(kBroadcast, station(0), 100)); });
  CHECK(seen.empty());
}

TEST_CASE("frames that come at the same time leave, and are told, in the order of their ports") {
  start();
  run([] {
    (void)ports_of(3, frame(kBroadcast, station(3)));
    std::vector<std::size_t> seen;
    bridge().set_tap([&](std::size_t port, const FrameRecord&) { seen.push_back(port); });
    for (const std::size_t from : {2, 0, 1}) send(from, frame(station(3), station(from)));
    wait_ns(1'000);
    const auto got = received(3);
    REQUIRE(got.size() == 3);
    for (std::uint8_t i = 0; i < 3; ++i) CHECK(got[i].bytes[11] == i);
    CHECK(seen == std::vector<std::size_t>{0, 1, 2, 3, 3, 3});
    bridge().set_tap({});
  });
}

TEST_CASE("a reset forgets stations, frames, counts and links") {
  start();
  run([] {
    (void)ports_of(0, frame(kBroadcast, station(0)));
    for (int i = 0; i < 5; ++i) send(1, frame(station(0), station(1), 1000));
    wait_ns(250);
    bridge().cable(2).set_link(false);
  });
  CHECK(bridge().waiting() != 0);
  start();
  CHECK(bridge().waiting() == 0);
  CHECK(bridge().port_of(station(0)) == std::nullopt);
  CHECK(bridge().statistics(0).sent == 0);
  run([] {
    wait_ns(2'000);
    CHECK(received(0).empty());
    CHECK(ports_of(1, frame(station(0), station(1))) == Count{1, 0, 1, 1});
  });
}

TEST_CASE("options that make no switch are refused") {
  const auto refused = [](const EthernetSwitchOptions& options) {
    CHECK_THROWS_AS(bridge().reset(cables(), options), std::invalid_argument);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double latency : {-1.0, 1e16, nan}) refused({.latency_ns = latency});
  for (const double ageing : {0.0, -1.0, 1e16, nan}) refused({.ageing_ns = ageing});
  refused({.buffer_bytes = 59});
  CHECK_NOTHROW(bridge().reset(cables(), {.buffer_bytes = 60}));
  CHECK_THROWS_WITH(bridge().reset(std::vector<WireOptions>(3), {}), Catch::Matchers::Contains("4 ports"));
  CHECK_THROWS_AS(bridge().reset(cables({.rate_gbps = 0}), {}), std::invalid_argument);
  CHECK_THROWS_AS(bridge().cable(kPorts), std::out_of_range);
  start();
}
