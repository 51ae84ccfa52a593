#include <Vnic_rest.h>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/top/nic_rest.sv with 8 cycles to settle: quiet when nothing has moved for so long, and at once no longer.
using namespace rnic::test;

namespace {
constexpr int kSettle = 8;

struct World {
  World() {
    auto& dut = *bench.dut;
    dut.stir_i = dut.busy_i = 0;
    dut.levels_i = 0x5a5;
    rest({});
    bench.reset();
  }
  void rest(const rnic::rtl::Rest& rest) { put(bench.dut->rest_i, rest); }
  bool quiet() {
    bench.dut->eval();
    return bench.dut->quiet_o;
  }
  /// Cycles until it is quiet.
  int settle() {
    for (int cycles = 0; cycles < 100; ++cycles, bench.tick()) {
      if (quiet()) return cycles;
    }
    return -1;
  }
  Bench<Vnic_rest> bench{seed()};
};
}  // namespace

TEST_CASE("nic_rest: whatever moves ends the quiet at once, and it is quiet again when all has settled", "[rtl]") {
  World w;
  auto& dut = *w.bench.dut;
  CHECK_FALSE(w.quiet());
  CHECK(w.settle() >= kSettle - 1);
  const auto moves = [&](auto&& begin, auto&& end) {
    w.settle();
    begin();
    CHECK_FALSE(w.quiet());
    w.bench.tick();
    end();
    const int cycles = w.settle();
    CHECK(cycles >= kSettle - 1);
    CHECK(cycles <= kSettle + 1);
  };
  moves([&] { dut.stir_i = 1; }, [&] { dut.stir_i = 0; });
  moves([&] { dut.busy_i = 1; }, [&] { dut.busy_i = 0; });
  moves([&] { w.rest({.busy = 1}); }, [&] { w.rest({}); });
  for (int bit = 0; bit < 12; ++bit) moves([&] { dut.levels_i ^= 1u << bit; }, [] {});
  dut.stir_i = 1;
  w.bench.run(100);
  CHECK_FALSE(w.quiet());
}

TEST_CASE("nic_rest: the deadline is a time of the NIC's clock, however far apart time and cycles are", "[rtl]") {
  World w;
  auto& dut = *w.bench.dut;
  constexpr std::uint64_t kMask = (1ULL << 43) - 1;
  CHECK_FALSE(dut.timed_o);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t time = w.bench.rng(), cycles = w.bench.rng(), left = w.bench.uniform(0, 1ULL << 41);
    dut.time_i = time;
    dut.cycles_i = cycles;
    w.rest({.timed = 1, .deadline = (cycles + left) & kMask});
    dut.eval();
    CHECK(dut.timed_o);
    CHECK(dut.deadline_o == time + left);
    // One that has passed is not far away.
    w.rest({.timed = 1, .deadline = (cycles - left) & kMask});
    dut.eval();
    CHECK(dut.deadline_o == time - left);
  }
}
