#include <Vrsp_due.h>

#include "tests/support/rtl_bench.hpp"

// rtl/rsp/rsp_due.sv: what is due, and what is answered, of each queue pair; of pulses in one cycle that say different
// things of one queue pair, a new life counts more than something new, and that more than what a turn has done.
using namespace rnic::test;

TEST_CASE("rsp_due: two bits for each queue pair", "[rtl]") {
  Bench<Vrsp_due> bench(seed());
  auto& dut = *bench.dut;
  dut.take_i = dut.due_back_i = dut.sent_i = dut.due_valid_i = dut.done_valid_i = dut.clear_valid_i = 0;
  bench.reset();

  std::bitset<256> due;
  std::bitset<256> answered;
  int taken = 0;
  // Few queue pairs at a time, so that pulses meet.
  for (int cycle = 0; cycle < 20000; ++cycle) {
    const auto base = static_cast<unsigned>(cycle / 200 * 37);
    const auto some = [&] { return static_cast<CData>(base + static_cast<unsigned>(bench.uniform(0, 3))); };
    dut.turn_qp_i = some();
    dut.back_qp_i = some();
    dut.due_qp_i = some();
    dut.done_qp_i = some();
    dut.clear_qp_i = some();
    dut.take_i = bench.chance(0.3);
    dut.due_back_i = bench.chance(0.1);
    dut.sent_i = bench.chance(0.3);
    dut.due_valid_i = bench.chance(0.3);
    dut.done_valid_i = bench.chance(0.3);
    dut.clear_valid_i = bench.chance(0.05);
    dut.clk_i = 0;
    dut.eval();

    REQUIRE(dut.due_o == due[dut.turn_qp_i]);
    REQUIRE(dut.answered_o == answered[dut.turn_qp_i]);
    REQUIRE(dut.waits_o == due[dut.due_qp_i]);
    taken += dut.take_i && dut.due_o;

    if (dut.take_i) due[dut.turn_qp_i] = false;
    if (dut.due_back_i) due[dut.back_qp_i] = true;
    if (dut.due_valid_i) due[dut.due_qp_i] = true;
    if (dut.sent_i) answered[dut.back_qp_i] = false;
    if (dut.done_valid_i) answered[dut.done_qp_i] = true;
    if (dut.clear_valid_i) due[dut.clear_qp_i] = answered[dut.clear_qp_i] = false;
    dut.clk_i = 1;
    dut.eval();
  }
  CHECK(taken > 500);
}
