#include <Vrx_done_flush.h>

#include <deque>

#include "tests/support/rtl_bench.hpp"

// rtl/rx/rx_done_flush.sv: a queue pair is forgotten when each packet that was in the receive engine as the request
// came has left it, and not long after, although packets of others never stop.
using namespace rnic::test;

TEST_CASE("rx_done_flush: the queue pair is cleared when what was inside has left", "[rtl]") {
  Bench<Vrx_done_flush> bench(seed());
  auto& dut = *bench.dut;
  dut.qp_reset_valid_i = dut.checking_i = dut.checked_i = dut.entered_i = dut.left_i = 0;
  bench.reset();
  std::deque<bool> checking, inside;  // true: of the queue pair
  unsigned clears = 0;
  double check_rate = 0.5, leave_rate = 0.5;
  const auto cycle = [&](bool ours) {
    dut.checking_i = static_cast<CData>(checking.size());
    const bool checked = !checking.empty() && bench.chance(check_rate);
    // Without a plan: dropped.
    const bool entered = checked && inside.size() < 130 && bench.chance(0.8);
    const bool left = !inside.empty() && bench.chance(leave_rate);
    dut.checked_i = checked;
    dut.entered_i = entered;
    dut.left_i = left;
    if (left) inside.pop_front();
    if (entered) inside.push_back(checking.front());
    if (checked) checking.pop_front();
    if (checking.size() < 2 && bench.chance(0.6)) checking.push_back(ours && bench.chance(0.5));
    dut.clk_i = 0;
    dut.eval();
    REQUIRE(dut.clear_valid_o == dut.qp_reset_ready_o);
    clears += dut.clear_valid_o;
    bench.tick();
  };
  const auto any = [&] {
    return std::count(checking.begin(), checking.end(), true) + std::count(inside.begin(), inside.end(), true) != 0;
  };
  constexpr unsigned kRounds = 1500;
  for (unsigned round = 0; round < kRounds; ++round) {
    check_rate = static_cast<double>(bench.uniform(1, 10)) / 10;
    leave_rate = static_cast<double>(bench.uniform(2, 10)) / 10;
    for (auto n = bench.uniform(0, 60); n > 0; --n) cycle(true);
    dut.qp_reset_valid_i = 1;
    int since = 0;
    do {
      cycle(false);
      since = any() ? 0 : since + 1;
      REQUIRE(since < 1000);
    } while (!dut.qp_reset_ready_o);
    REQUIRE_FALSE(any());
    cycle(false);
    dut.qp_reset_valid_i = 0;
    cycle(false);
  }
  CHECK(clears == kRounds);
}
