#include <Vnic_rest.h>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/top/nic_rest.sv with 3 rooms and 12 levels: quiet while no room is awake and no level changes.
using namespace rnic::test;

namespace {
constexpr int kRooms = 3, kLevels = 12;

struct World {
  World() {
    auto& dut = *bench.dut;
    dut.awake_i = 0;
    dut.levels_i = 0x5a5;
    rest({});
    bench.run(2);
  }
  void rest(const rnic::rtl::Rest& rest) { put(bench.dut->rest_i, rest); }
  bool quiet() {
    bench.dut->eval();
    return bench.dut->quiet_o;
  }
  Bench<Vnic_rest> bench{seed()};
};
}  // namespace

TEST_CASE("nic_rest: quiet as long as no room is awake", "[rtl]") {
  World w;
  auto& dut = *w.bench.dut;
  CHECK(w.quiet());
  for (int room = 0; room < kRooms; ++room) {
    dut.awake_i = static_cast<std::uint8_t>(1u << room);
    CHECK_FALSE(w.quiet());
    CHECK_FALSE(dut.moved_o);
    w.bench.run(100);
    CHECK_FALSE(w.quiet());
    dut.awake_i = 0;
    CHECK(w.quiet());
  }
}

TEST_CASE("nic_rest: a level that changes is told in the cycle in which it has, and that one is not quiet", "[rtl]") {
  World w;
  auto& dut = *w.bench.dut;
  for (int bit = 0; bit < kLevels; ++bit) {
    dut.levels_i ^= static_cast<std::uint16_t>(1u << bit);
    CHECK_FALSE(w.quiet());
    CHECK(dut.moved_o);
    w.bench.tick();
    CHECK(w.quiet());
    CHECK_FALSE(dut.moved_o);
  }
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
