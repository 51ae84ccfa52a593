#include <Vqp_reset_order.h>

#include "tests/support/rtl_bench.hpp"

// rtl/top/qp_reset_order.sv: the queues forget a queue pair, each once and in any order; the send path does when all of
// them have; then the request is answered.
using namespace rnic::test;

TEST_CASE("qp_reset_order: the send path forgets last", "[rtl]") {
  constexpr std::uint32_t kQueues = 0xf;
  Bench<Vqp_reset_order> bench(seed());
  auto& dut = *bench.dut;
  dut.in_valid_i = 0;
  dut.queues_ready_i = 0;
  dut.path_ready_i = 0;
  bench.reset();
  int requests = 0;
  int waited = 0;
  std::uint32_t answered = 0;
  bool asking = false;
  for (int cycle = 0; cycle < 20000; ++cycle) {
    if (!asking && bench.chance(0.3)) {
      asking = true;
      answered = 0;
    }
    dut.in_valid_i = asking;
    dut.queues_ready_i = static_cast<CData>(bench.uniform(0, kQueues) & bench.uniform(0, kQueues));
    dut.path_ready_i = bench.chance(0.3);
    dut.clk_i = 0;
    dut.eval();
    if (!asking) REQUIRE((dut.queues_valid_o == 0 && dut.path_valid_o == 0));
    REQUIRE((dut.queues_valid_o & answered) == 0);
    if (dut.path_valid_o) {
      REQUIRE(answered == kQueues);
      waited += dut.path_ready_i == 0;
    }
    REQUIRE(dut.in_ready_o == (dut.path_valid_o && dut.path_ready_i));
    if (dut.in_ready_o) {
      asking = false;
      ++requests;
    }
    answered |= dut.queues_valid_o & dut.queues_ready_i;
    dut.clk_i = 1;
    dut.eval();
  }
  CHECK(requests > 500);
  CHECK(waited > 500);
}
