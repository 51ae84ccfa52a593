#include <Vcounter_bank.h>

#include "driver/generated/host_interface.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/counter_bank.sv: no event is lost, none is counted twice, and a read gives the count of its moment.
using namespace rnic::test;

namespace {
constexpr std::size_t kCounters = rnic::hw::kCounterNames.size();
using Events = std::bitset<kCounters>;

struct World {
  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    set_port_bits(bench.dut->event_i, Events{});
    bench.dut->rd_valid_i = 0;
    bench.reset();
  }
  /// One cycle with these events.
  void cycle(const Events& events) {
    set_port_bits(bench.dut->event_i, events);
    bench.tick();
    before = expected;
    for (std::size_t i = 0; i < kCounters; ++i) expected[i] += events[i];
  }
  /// Reads a counter while `events` gives the events of each cycle; the count is that of two cycles before the answer.
  void check(std::size_t index, const std::function<Events()>& events) {
    auto& dut = *bench.dut;
    dut.rd_valid_i = 1;
    dut.rd_index_i = static_cast<std::uint8_t>(index);
    for (int wait = 0;; ++wait) {
      REQUIRE(wait < 8);
      const Events now = events();
      set_port_bits(dut.event_i, now);
      dut.clk_i = 0;
      dut.eval();
      if (dut.rd_done_o) {
        REQUIRE(dut.rd_count_o == before[index]);
        cycle(now);
        break;
      }
      cycle(now);
    }
    dut.rd_valid_i = 0;
  }
  Bench<Vcounter_bank> bench;
  std::array<std::uint64_t, kCounters> expected{}, before{};  // before: without the last cycle
};
}  // namespace

TEST_CASE("counter_bank: random events and reads agree with a plain count", "[rtl]") {
  World world(seed());
  auto& bench = world.bench;
  auto sparse = [&] {
    Events events;
    for (std::size_t i = 0; i < kCounters; ++i) events[i] = bench.chance(0.25);
    return events;
  };
  for (int i = 0; i < 100; ++i) world.cycle(sparse());  // while the RAM is still being cleared
  while (!bench.dut->ready_o && bench.cycle < 300) world.cycle(sparse());
  for (int round = 0; round < 3000; ++round) {
    if (bench.chance(0.7)) world.check(bench.uniform(0, kCounters - 1), sparse);
    for (auto idle = bench.uniform(0, 6); idle > 0; --idle) world.cycle(sparse());
  }
  for (std::size_t i = 0; i < kCounters; ++i) world.check(i, [] { return Events{}; });
}

TEST_CASE("counter_bank: every event in every cycle, from reset on, under constant reading", "[rtl]") {
  World world(seed());
  const Events all = Events{}.set();
  while (!world.bench.dut->ready_o) world.cycle(all);
  for (int round = 0; round < 2000; ++round) world.check(world.bench.uniform(0, kCounters - 1), [&] { return all; });
  CHECK(world.expected[0] > 4000);
}

TEST_CASE("counter_bank: every event in every cycle is kept while nobody reads", "[rtl]") {
  World world(seed());
  const Events all = Events{}.set();
  for (int i = 0; i < 5000; ++i) world.cycle(all);
  for (std::size_t i = 0; i < kCounters; ++i) world.check(i, [] { return Events{}; });
}
