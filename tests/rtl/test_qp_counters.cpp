#include <Vqp_counters.h>

#include "driver/generated/host_interface.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/qp_counters.sv: no event of a QP is lost, none is counted twice, and none for another QP; a query has every
// event that was told before it, whatever is told meanwhile, and is answered in a time that does not depend on that.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr std::size_t kSources = 5, kHalf = hw::kQpCounters / 2;
using Counts = std::array<std::uint64_t, hw::kQpCounters>;

struct World {
  struct Event {
    std::uint32_t mask = 0;  // counters that go up
    std::uint8_t qp = 0;
  };
  using Events = std::array<Event, kSources>;

  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    drive({});
    bench.dut->query_valid_i = 0;
    bench.reset();
  }
  void drive(const Events& events) {
    std::bitset<kSources * hw::kQpCounters> masks;
    std::bitset<kSources * 8> qps;
    for (std::size_t s = 0; s < kSources; ++s) {
      for (std::size_t i = 0; i < hw::kQpCounters; ++i) masks[s * hw::kQpCounters + i] = events[s].mask >> i & 1;
      for (std::size_t i = 0; i < 8; ++i) qps[s * 8 + i] = events[s].qp >> i & 1;
    }
    set_port_bits(bench.dut->event_i, masks);
    set_port_bits(bench.dut->event_qp_i, qps);
  }
  void cycle(const Events& events) {
    drive(events);
    bench.tick();
    for (const auto& event : events) {
      for (std::size_t i = 0; i < hw::kQpCounters; ++i) {
        if (event.mask >> i & 1) ++expected[event.qp][i];
      }
    }
  }
  /// Asks for half of a QP's counters while `events` gives the events of each cycle. Each count is that of a cycle
  /// between question and answer.
  std::array<std::uint32_t, kHalf> query(std::uint8_t qp, bool upper, bool clear, const std::function<Events()>& events,
                                         int limit = 1000) {
    auto& dut = *bench.dut;
    dut.query_valid_i = 1;
    dut.query_qp_i = qp;
    dut.query_upper_i = upper;
    dut.query_clear_i = clear;
    const Counts before = expected[qp];
    std::array<std::uint32_t, kHalf> counts{};
    for (int wait = 0;; ++wait) {
      REQUIRE(wait < limit);
      const auto now = events();
      drive(now);
      dut.clk_i = 0;
      dut.eval();
      const bool done = dut.query_done_o;
      if (done)
        port_to_bytes(dut.query_counts_o, std::span(reinterpret_cast<std::uint8_t*>(counts.data()), sizeof counts));
      cycle(now);
      if (done) break;
    }
    dut.query_valid_i = 0;
    for (std::size_t i = 0; known[qp][upper] && i < kHalf; ++i) {
      INFO("counter " << upper * kHalf + i);
      REQUIRE(counts[i] >= before[upper * kHalf + i]);
      REQUIRE(counts[i] <= expected[qp][upper * kHalf + i]);
    }
    if (clear) {
      // What came later counts from then on; what was read does not any more.
      for (std::size_t i = 0; i < kHalf; ++i)
        expected[qp][upper * kHalf + i] -= known[qp][upper] ? counts[i] : expected[qp][upper * kHalf + i];
      known[qp][upper] = true;
    }
    return counts;
  }
  Bench<Vqp_counters> bench;
  std::map<std::uint8_t, Counts> expected;
  std::map<std::uint8_t, std::array<bool, 2>> known;  // cleared once
};
}  // namespace

TEST_CASE("qp_counters: random events of a few QPs agree with a plain count", "[rtl]") {
  World world(seed());
  auto& bench = world.bench;
  const auto none = [] { return World::Events{}; };
  const std::array<std::uint8_t, 6> qps{0, 1, 2, 3, 128, 255};
  for (const auto qp : qps) {
    for (const bool upper : {false, true}) world.query(qp, upper, true, none);
  }
  // As often as the contract says: a packet in six cycles, of up to two counters, and what follows it; in bursts when
  // they come from a queue.
  unsigned next_packet = 0, next_retry = 0, owed = 0;
  bool busy = true;
  const auto traffic = [&] {
    World::Events events;
    for (auto& event : events) event.qp = qps[bench.uniform(0, bench.chance(0.5) ? 0 : 5)];
    const auto bit = [&] { return 1u << bench.uniform(0, hw::kQpCounters - 1); };
    if (!busy) return events;
    if (next_packet == 0) {
      events[0].mask = bit() | bit();
      next_packet = bench.chance(0.8) ? 6 : 20;
      if (owed < 12) ++owed;
    } else {
      --next_packet;
    }
    if (owed > 8 || (owed != 0 && bench.chance(0.05))) {
      events[1].mask = bit();
      --owed;
    }
    if (next_packet == 3) events[2 + bench.uniform(0, 1)].mask = bit();
    if (next_retry == 0) {
      events[4].mask = bit();
      next_retry = 7;
    } else {
      --next_retry;
    }
    return events;
  };
  for (int round = 0; round < 1500; ++round) {
    busy = bench.chance(0.8);
    if (bench.chance(0.6)) world.query(qps[bench.uniform(0, 5)], bench.chance(0.5), bench.chance(0.3), traffic);
    for (auto idle = bench.uniform(0, 20); idle > 0; --idle) world.cycle(traffic());
  }
  for (int i = 0; i < 100; ++i) world.cycle({});
  for (const auto qp : qps) {
    for (const bool upper : {false, true}) {
      const auto counts = world.query(qp, upper, false, none);
      for (std::size_t i = 0; i < kHalf; ++i) CHECK(counts[i] == world.expected[qp][upper * kHalf + i]);
    }
  }
}

TEST_CASE("qp_counters: the same counter in cycle after cycle, and all of one QP at once", "[rtl]") {
  World world(seed());
  const auto none = [] { return World::Events{}; };
  for (const bool upper : {false, true}) world.query(9, upper, true, none);
  World::Events one, all;
  one[3] = {1u << 17, 9};
  all[1] = {(1u << hw::kQpCounters) - 1, 9};
  for (int i = 0; i < 14; ++i) world.cycle(one);
  for (int i = 0; i < 4; ++i) world.cycle(all);
  CHECK(world.query(9, true, false, none)[5] == 18);
  CHECK(world.query(9, false, true, none)[0] == 4);
  CHECK(world.query(9, false, false, none)[0] == 0);
  CHECK(world.query(9, true, false, none)[11] == 4);
}

TEST_CASE("qp_counters: every source tells as much as its queue takes, alone and all at once, and none is lost",
          "[rtl]") {
  World world(seed());
  auto& bench = world.bench;
  const auto none = [] { return World::Events{}; };
  const std::array<std::uint8_t, 3> qps{0, 77, 255};
  for (const auto qp : qps) {
    for (const bool upper : {false, true}) world.query(qp, upper, true, none);
  }
  constexpr std::uint32_t kAll = (1u << hw::kQpCounters) - 1;
  const auto any_qp = [&] { return qps[bench.uniform(0, 2)]; };
  // Two are on their way out of the queue before the first is through.
  constexpr unsigned kQueue = 17;
  for (std::size_t s = 0; s < kSources; ++s) {
    for (unsigned i = 0; i < kQueue + 2; ++i) {
      World::Events events;
      events[s] = {kAll, any_qp()};
      world.cycle(events);
    }
    world.query(any_qp(), bench.chance(0.5), bench.chance(0.5), none, 1000);
  }
  for (int round = 0; round < 200; ++round) {
    std::array<unsigned, kSources> left{};
    for (auto& n : left) n = bench.chance(0.8) ? kQueue : 0;
    const double wide = bench.chance(0.3) ? 0.5 : 0.0;
    const auto burst = [&] {
      World::Events events;
      for (std::size_t s = 0; s < kSources; ++s) {
        if (left[s] == 0 || bench.chance(0.1)) continue;
        --left[s];
        events[s].qp = any_qp();
        events[s].mask = bench.chance(wide) ? static_cast<std::uint32_t>(bench.uniform(1, kAll))
                                            : 1u << bench.uniform(0, hw::kQpCounters - 1);
      }
      return events;
    };
    for (auto first = bench.uniform(0, 30); first > 0; --first) world.cycle(burst());
    world.query(any_qp(), bench.chance(0.5), bench.chance(0.3), burst, 2500);
    world.query(any_qp(), bench.chance(0.5), false, none, 2500);  // all of them have left
  }
  for (const auto qp : qps) {
    for (const bool upper : {false, true}) {
      const auto counts = world.query(qp, upper, false, none);
      for (std::size_t i = 0; i < kHalf; ++i) CHECK(counts[i] == world.expected[qp][upper * kHalf + i]);
    }
  }
}

// A flood of packets that are dropped: rx_check needs two cycles for each.
TEST_CASE("qp_counters: a query is answered at once beside a flood of events that never pauses", "[rtl]") {
  World world(seed());
  auto& bench = world.bench;
  const std::array<std::uint8_t, 3> qps{3, 100, 255};
  bool tells = false;
  const auto flood = [&] {
    World::Events events;
    tells = !tells;
    if (tells) events[0] = {1u << 2, qps[bench.uniform(0, 2)]};
    if (bench.chance(0.02)) events[4] = {1u << 18, qps[bench.uniform(0, 2)]};
    return events;
  };
  for (const auto qp : qps) {
    for (const bool upper : {false, true}) world.query(qp, upper, true, [] { return World::Events{}; });
  }
  for (int round = 0; round < 500; ++round) {
    world.query(qps[bench.uniform(0, 2)], bench.chance(0.5), bench.chance(0.3), flood, 80);
    for (auto pause = bench.uniform(0, 3); pause > 0; --pause) world.cycle(flood());
  }
  for (int i = 0; i < 40; ++i) world.cycle({});
  for (const auto qp : qps) {
    for (const bool upper : {false, true}) {
      const auto counts = world.query(qp, upper, false, [] { return World::Events{}; });
      for (std::size_t i = 0; i < kHalf; ++i) CHECK(counts[i] == world.expected[qp][upper * kHalf + i]);
    }
  }
}
