#include <Vskid_buffer.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/skid_buffer.sv: order, no loss, one cycle of latency, full throughput.
using namespace rnic::test;

TEST_CASE("skid_buffer: random offers and back-pressure", "[rtl]") {
  Bench<Vskid_buffer> bench(seed());
  auto& dut = *bench.dut;
  dut.in_valid_i = dut.out_ready_i = 0;
  bench.reset();
  std::deque<int> inside;
  bool offering = false;
  int next = 0, out = 0;
  for (int cycle = 0; cycle < 20000; ++cycle) {
    const double rate = (cycle / 1000) % 2 ? 0.9 : 0.3;
    if (!offering && bench.chance(rate)) {
      offering = true;
      dut.in_data_i = static_cast<CData>(next);
    }
    dut.in_valid_i = offering;
    dut.out_ready_i = bench.chance(1.1 - rate);
    dut.clk_i = 0;
    dut.eval();
    REQUIRE(dut.out_valid_o == !inside.empty());
    REQUIRE(dut.in_ready_o == (inside.size() < 2));
    if (dut.out_valid_o && dut.out_ready_i) {
      REQUIRE(dut.out_data_o == static_cast<CData>(inside.front()));
      inside.pop_front();
      ++out;
    }
    if (offering && dut.in_ready_o) {
      inside.push_back(next++);
      offering = false;
    }
    dut.clk_i = 1;
    dut.eval();
  }
  CHECK(out > 4000);
}
