#include <Vpacket_buffer.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/packet_buffer.sv: words come out in order, only those of committed packets, and none is lost unless
// refused.
using namespace rnic::test;

TEST_CASE("packet_buffer: commit, drop, full", "[rtl]") {
  constexpr std::size_t kDepth = 16;
  Bench<Vpacket_buffer> bench(seed());
  auto& dut = *bench.dut;
  dut.in_valid_i = dut.commit_i = dut.drop_i = dut.out_ready_i = 0;
  bench.reset();
  std::deque<std::uint32_t> committed, open;
  std::uint64_t commits = 0, drops = 0, refused = 0, taken = 0, waiting = 0;
  bool held = false;
  for (int cycle = 0; cycle < 50000; ++cycle) {
    const double fill = cycle / 1000 % 2 ? 0.9 : 0.4;
    const auto word = static_cast<std::uint32_t>(bench.rng());
    dut.in_valid_i = bench.chance(fill);
    dut.in_data_i = word;
    const bool end = bench.chance(0.2);
    dut.commit_i = end && bench.chance(0.6);
    dut.drop_i = end && !dut.commit_i;
    dut.out_ready_i = bench.chance(1.2 - fill);
    dut.clk_i = 0;
    dut.eval();
    // Words inside: those of committed packets that are still in the RAM, and those of the open packet.
    const auto inside = kDepth - dut.room_o;
    REQUIRE(inside <= kDepth);
    REQUIRE(inside + dut.out_valid_o == committed.size() + open.size());
    REQUIRE(static_cast<bool>(dut.in_ready_o) == (inside < kDepth));
    if (held) REQUIRE(dut.out_valid_o);
    if (dut.out_valid_o) {
      REQUIRE_FALSE(committed.empty());
      REQUIRE(dut.out_data_o == committed.front());
    }
    // A committed word is offered at the latest in the second cycle.
    waiting = !committed.empty() && !dut.out_valid_o ? waiting + 1 : 0;
    REQUIRE(waiting <= 1);
    held = dut.out_valid_o && !dut.out_ready_i;
    if (dut.out_valid_o && dut.out_ready_i) {
      committed.pop_front();
      ++taken;
    }
    if (dut.in_valid_i && dut.in_ready_o) open.push_back(word);
    if (dut.in_valid_i && !dut.in_ready_o) ++refused;
    if (dut.commit_i) {
      committed.insert(committed.end(), open.begin(), open.end());
      ++commits;
    }
    drops += dut.drop_i;
    if (end) open.clear();
    dut.clk_i = 1;
    dut.eval();
  }
  CHECK(commits > 1000);
  CHECK(drops > 1000);
  CHECK(refused > 100);
  CHECK(taken > 5000);
}
