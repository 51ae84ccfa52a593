#include <Vctx_turn.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/ctx_turn.sv: each item has one turn, in order, with the context that was lent for it; what follows comes
// when the context is back, and before the next item.
using namespace rnic::test;

TEST_CASE("ctx_turn: item, context and what follows belong together", "[rtl]") {
  enum class Step { Free, Ask, Lent, Back, Follow };
  Bench<Vctx_turn> bench(seed());
  auto& dut = *bench.dut;
  dut.item_valid_i = dut.acq_ready_i = dut.ctx_valid_i = dut.rel_ready_i = dut.follow_i = dut.follow_ready_i = 0;
  bench.reset();

  Step step = Step::Free;
  unsigned offered = 0;
  unsigned item = 0;
  unsigned context = 0;
  bool offering = false;
  int turns = 0;
  int followed = 0;
  for (int cycle = 0; cycle < 20000; ++cycle) {
    // An offer stays as it is until it is taken; all others come at random, and garbage with them.
    if (!offering && bench.chance(0.5)) {
      offering = true;
      offered = static_cast<unsigned>(bench.uniform(0, 255));
    }
    const bool lend = step == Step::Lent && bench.chance(0.3);
    const unsigned lent = static_cast<unsigned>(bench.uniform(0, 255));
    dut.item_valid_i = offering;
    dut.item_data_i = static_cast<CData>(offering ? offered : bench.uniform(0, 255));
    dut.acq_ready_i = bench.chance(0.3);
    dut.ctx_valid_i = lend;
    dut.ctx_data_i = static_cast<CData>(lent);
    dut.rel_ready_i = bench.chance(0.3);
    dut.follow_i = bench.chance(0.5);
    dut.follow_ready_i = bench.chance(0.3);
    dut.clk_i = 0;
    dut.eval();

    REQUIRE(dut.item_ready_o == (step == Step::Free));
    REQUIRE(dut.acq_valid_o == (step == Step::Ask));
    REQUIRE(dut.rel_valid_o == (step == Step::Back));
    REQUIRE(dut.follow_valid_o == (step == Step::Follow));
    if (step != Step::Free) REQUIRE(dut.item_o == item);
    if (step == Step::Back || step == Step::Follow) REQUIRE(dut.ctx_o == context);

    switch (step) {
      case Step::Free:
        if (!offering) break;
        item = offered;
        offering = false;
        step = Step::Ask;
        break;
      case Step::Ask:
        if (dut.acq_ready_i) step = Step::Lent;
        break;
      case Step::Lent:
        if (!lend) break;
        context = lent;
        step = Step::Back;
        break;
      case Step::Back:
        if (!dut.rel_ready_i) break;
        ++turns;
        step = dut.follow_i ? Step::Follow : Step::Free;
        break;
      case Step::Follow:
        if (!dut.follow_ready_i) break;
        ++followed;
        step = Step::Free;
        break;
    }
    dut.clk_i = 1;
    dut.eval();
  }
  CHECK(turns > 1000);
  CHECK(followed > 400);
}
