#include <Vqp_reset_fan.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/qp_reset_fan.sv: each block answers exactly once a request; the answer comes after the last of them.
using namespace rnic::test;

TEST_CASE("qp_reset_fan: waits for every block", "[rtl]") {
  constexpr std::uint32_t kBlocks = 5;
  Bench<Vqp_reset_fan> bench(seed());
  auto& dut = *bench.dut;
  dut.in_valid_i = 0;
  dut.out_ready_i = 0;
  bench.reset();
  int requests = 0;
  std::uint32_t answered = 0;
  bool asking = false;
  for (int cycle = 0; cycle < 20000; ++cycle) {
    if (!asking && bench.chance(0.3)) {
      asking = true;
      answered = 0;
    }
    dut.in_valid_i = asking;
    dut.out_ready_i = static_cast<CData>(bench.uniform(0, 31) & bench.uniform(0, 31));
    dut.clk_i = 0;
    dut.eval();
    if (!asking) REQUIRE(dut.out_valid_o == 0);
    REQUIRE((dut.out_valid_o & answered) == 0);
    const bool complete = answered == (1u << kBlocks) - 1;
    if (dut.in_ready_o) {
      REQUIRE(complete);
      asking = false;
      ++requests;
    } else {
      answered |= dut.out_valid_o & dut.out_ready_i;
    }
    dut.clk_i = 1;
    dut.eval();
  }
  CHECK(requests > 500);
}
