#include <Vmem_op_again.h>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/xlate/mem_op_again.sv: an operation that something bound has refused is put again when no failed QP can have
// windows any more (decisions 56); all else passes once, as it is.
using namespace rnic;
using namespace rnic::test;

namespace {
using Status = rtl::MemOpStatus;

/// A client on one side, mem_op on the other, which answers with the next of `answers`; `unbinding` is told cycle by
/// cycle by `fails`.
struct World : Agent {
  explicit World(std::uint64_t s) : bench(s) {
    auto& d = *bench.dut;
    d.unbinding_i = d.unbound_i = d.in_valid_i = d.in_rsp_ready_i = d.out_ready_i = d.out_rsp_valid_i = 0;
    bench.reset();
    bench.add(*this);
  }
  void drive() override {
    auto& d = *bench.dut;
    if (left > 0) --left;
    if (fails && left == 0 && bench.chance(0.02)) left = static_cast<int>(bench.uniform(1, 60));
    d.unbinding_i = left > 0;
    if (!offering && !waiting && bench.chance(0.2)) {
      asked.key = static_cast<std::uint32_t>(bench.rng());
      asked.va = bench.rng();
      asked.op = static_cast<std::uint8_t>(bench.uniform(0, 5));
      put(d.in_data_i, asked);
      offering = true;
    }
    d.in_valid_i = offering;
    d.in_rsp_ready_i = bench.chance(0.5);
    d.out_ready_i = !working && bench.chance(0.3);
    if (working && !answering && bench.chance(0.1)) {
      answering = true;
      status = static_cast<Status>(bench.chance(0.5) ? raw(Status::kBadState) : bench.uniform(0, 5));
    }
    d.out_rsp_valid_i = answering;
    d.rsp_status_i = static_cast<std::uint8_t>(status);
  }
  void sample() override {
    auto& d = *bench.dut;
    if (offering && d.in_ready_o) {
      offering = false;
      waiting = true;
      tries = 0;
      REQUIRE(d.out_valid_o);
    }
    if (d.out_valid_o && d.out_ready_i) {
      REQUIRE(waiting);
      REQUIRE(get<rtl::MemOp>(d.out_data_o) == asked);
      // Only what a failed QP may have been in the way of is put again, and not before that is over.
      if (++tries > 1) {
        REQUIRE(refused);
        REQUIRE(over);
        ++again;
      }
      working = true;
      refused = over = seen = false;
    }
    seen = seen || (working && d.unbinding_i);
    over = over || (refused && !d.unbinding_i);
    if (d.in_rsp_valid_o) REQUIRE((answering && waiting));
    if (d.out_rsp_valid_i && d.out_rsp_ready_o) {
      working = answering = false;
      refused = status == Status::kBadState && seen;
      if (refused)
        REQUIRE_FALSE(d.in_rsp_valid_o);
      else
        REQUIRE((d.in_rsp_valid_o && d.in_rsp_ready_i));
    }
    if (d.in_rsp_valid_o && d.in_rsp_ready_i) {
      waiting = false;
      ++(status == Status::kBadState ? busy : other);
    }
  }
  Bench<Vmem_op_again> bench;
  rtl::MemOp asked;
  Status status{};
  bool fails = false, offering = false, waiting = false, working = false, answering = false;
  bool refused = false, seen = false, over = false;
  int left = 0;
  unsigned tries = 0, again = 0, busy = 0, other = 0;
};
}  // namespace

TEST_CASE("mem_op_again: while no QP fails everything passes once", "[rtl]") {
  World w(seed());
  w.bench.run(40'000);
  CHECK(w.again == 0);
  CHECK(w.busy > 200);
  CHECK(w.other > 200);
}

TEST_CASE("mem_op_again: what is refused while a QP fails is put again when that is over (decisions 56)", "[rtl]") {
  World w(seed());
  w.fails = true;
  w.bench.run(80'000);
  CHECK(w.again > 200);
  CHECK(w.busy > 100);  // nobody was failing: it is busy
  CHECK(w.other > 200);
}

TEST_CASE("mem_op_again: queue pairs that fail for ever hold no operation up for ever", "[rtl]") {
  Bench<Vmem_op_again> bench(seed());
  auto& d = *bench.dut;
  d.unbinding_i = d.unbound_i = d.in_valid_i = d.out_rsp_valid_i = 0;
  d.in_rsp_ready_i = d.out_ready_i = 1;
  d.rsp_status_i = raw(Status::kBadState);
  bench.reset();
  d.unbinding_i = 1;
  // One more than those that had failed before: their windows are gone by then.
  constexpr unsigned kQueuePairs = 256, kSlack = 8, kSearch = 20;
  for (int round = 0; round < 3; ++round) {
    d.in_valid_i = 1;
    unsigned searches = 0, tries = 0;
    bool answered = false;
    for (unsigned cycle = 0; !answered; ++cycle) {
      REQUIRE(searches <= kQueuePairs + kSlack);
      d.unbound_i = cycle % kSearch == kSearch - 1;
      searches += d.unbound_i;
      d.clk_i = 0;
      d.eval();
      const bool offered = d.out_valid_o, judged = d.out_rsp_valid_i && d.out_rsp_ready_o;
      answered = d.in_rsp_valid_o;
      if (offered) ++tries;
      bench.tick();
      if (offered) d.in_valid_i = 0;
      d.out_rsp_valid_i = offered || (d.out_rsp_valid_i && !judged);
    }
    CHECK(tries == 2);
    CHECK(searches >= kQueuePairs);
    bench.run(5);
  }
}
