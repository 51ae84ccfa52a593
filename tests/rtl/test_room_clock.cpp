#include <Vroom_clock.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/room_clock.sv with Hold 5: the clock runs in each cycle that stirs and in the 5 after it, and no edge of
// it comes at another time than one of clk_i.
using namespace rnic::test;

namespace {
constexpr unsigned kHold = 5;

struct World {
  World() {
    bench.dut->open_i = bench.dut->stir_i = 0;
    bench.reset();
  }
  /// A cycle that begins with this input; whether clk_o had its edge with clk_i, and none without.
  bool clocked(bool stir) {
    auto& dut = *bench.dut;
    dut.stir_i = stir;
    dut.eval();
    CHECK(dut.clk_o == before);  // the enable moves only while clk_i is low
    dut.clk_i = 0;
    dut.eval();
    CHECK_FALSE(dut.clk_o);
    awake = dut.awake_o;
    dut.clk_i = 1;
    dut.eval();
    before = dut.clk_o;
    ++bench.cycle;
    return before;
  }
  bool before = true, awake = false;  ///< clk_o while clk_i is high; awake_o when the clock was low
  Bench<Vroom_clock> bench{seed()};
};
}  // namespace

TEST_CASE("room_clock: runs through a reset and the cycles after it, then stands still", "[rtl]") {
  World w;
  for (unsigned cycle = 0; cycle < kHold; ++cycle) CHECK(w.clocked(false));
  for (int cycle = 0; cycle < 50; ++cycle) CHECK_FALSE(w.clocked(false));
  w.bench.dut->rst_ni = 0;
  CHECK(w.clocked(false));
}

TEST_CASE("room_clock: runs in a cycle that stirs, and Hold cycles after the last of them", "[rtl]") {
  World w;
  unsigned still = 0;
  for (int i = 0; i < 5000; ++i) {
    const bool stir = w.bench.chance(0.12);
    if (stir) still = 0;
    const bool expected = still <= kHold;
    INFO("cycle " << i << ", still for " << still);
    REQUIRE(w.clocked(stir) == expected);
    REQUIRE(w.awake == expected);
    if (!stir) ++still;
    if (stir) still = 1;
  }
}

TEST_CASE("room_clock: with open_i it always runs, and awake_o is what it would be", "[rtl]") {
  World w;
  for (unsigned cycle = 0; cycle < kHold; ++cycle) w.clocked(false);
  w.bench.dut->open_i = 1;
  w.bench.dut->clk_i = 0;
  w.bench.dut->eval();
  w.before = false;
  for (int i = 0; i < 100; ++i) {
    CHECK(w.clocked(false));
    CHECK_FALSE(w.awake);
  }
}
