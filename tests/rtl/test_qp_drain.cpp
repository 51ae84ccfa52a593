#include <Vqp_drain.h>

#include <array>
#include <deque>

#include "tests/support/rtl_bench.hpp"

// rtl/completion/qp_drain.sv: the answer to a reset comes when nothing of the queue pair is left in any stage, however
// its work goes from one to the next, and comes although other queue pairs never stop.
using namespace rnic::test;

namespace {
enum Stage : std::size_t { kRetire, kErrors, kCqes, kWrites, kRecords, kStages };

/// The stages as queues of work; true: of the queue pair that is reset.
struct World {
  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.qp_reset_valid_i = dut.enter_i = dut.leave_i = dut.receive_busy_i = dut.error_busy_i = 0;
    bench.reset();
  }
  /// False: the stage has taken something in this cycle.
  bool enter(Stage stage, bool ours) {
    if (entered >> stage & 1) return false;
    entered |= 1u << stage;
    stages[stage].push_back(ours);
    return true;
  }
  /// The oldest work of a stage leaves it, and goes on in the same cycle; it stays while there is no room.
  bool leave(Stage stage) {
    const bool ours = stages[stage].front();
    switch (stage) {
      case kRetire:
        if (const Stage next = bench.chance(0.3)   ? kErrors
                               : bench.chance(0.6) ? kCqes
                                                   : kRecords;
            bench.chance(0.8) && !enter(next, ours))
          return false;
        break;
      case kErrors:
        if (ours) flush_until = std::max(flush_until, bench.cycle + bench.uniform(1, 40));
        break;
      case kCqes:
        if (!enter(kWrites, ours)) return false;
        break;
      default: break;
    }
    stages[stage].pop_front();
    return true;
  }
  bool any_left() const {
    bool any = receive_until > bench.cycle || flush_until > bench.cycle;
    for (const auto& stage : stages) any = any || std::count(stage.begin(), stage.end(), true) != 0;
    return any;
  }
  /// One cycle; `ours`: the queue pair still gets new work.
  void cycle(bool ours) {
    auto& dut = *bench.dut;
    entered = 0;
    unsigned left = 0;
    const bool receiving = receive_until > bench.cycle, flushing = flush_until > bench.cycle;
    if (receiving && bench.chance(0.3)) enter(bench.chance(0.5) ? kErrors : kCqes, true);
    if (flushing && bench.chance(0.5)) enter(kCqes, true);
    for (std::size_t s = 0; s < kStages; ++s) {
      if (stages[s].size() < 20 && bench.chance(0.3)) enter(static_cast<Stage>(s), ours && bench.chance(0.5));
    }
    if (ours && bench.chance(0.05)) receive_until = bench.cycle + bench.uniform(1, 60);
    for (std::size_t s = kStages; s-- > 0;) {
      if (stages[s].size() > (entered >> s & 1) && bench.chance(rate[s]) && leave(static_cast<Stage>(s)))
        left |= 1u << s;
    }
    dut.enter_i = static_cast<CData>(entered);
    dut.leave_i = static_cast<CData>(left);
    dut.receive_busy_i = receiving || receive_until > bench.cycle;
    dut.error_busy_i = flushing || flush_until > bench.cycle;
    bench.tick();
  }

  Bench<Vqp_drain> bench;
  std::array<std::deque<bool>, kStages> stages;
  std::array<double, kStages> rate{};
  std::uint64_t receive_until = 0, flush_until = 0;  ///< Until these cycles its work goes on there
  unsigned entered = 0;
};
}  // namespace

TEST_CASE("qp_drain: a reset is answered when nothing of the queue pair is left, and not long after", "[rtl]") {
  World w(seed());
  auto& dut = *w.bench.dut;
  for (int round = 0; round < 1500; ++round) {
    for (double& rate : w.rate) rate = static_cast<double>(w.bench.uniform(4, 10)) / 10;
    for (auto n = w.bench.uniform(0, 80); n > 0; --n) w.cycle(true);
    dut.qp_reset_valid_i = 1;
    int since = 0;  // nothing has been left for so long
    while (!dut.qp_reset_ready_o) {
      w.cycle(false);
      since = w.any_left() ? 0 : since + 1;
      REQUIRE(since < 500);
    }
    REQUIRE_FALSE(w.any_left());
    w.cycle(false);
    dut.qp_reset_valid_i = 0;
    w.cycle(false);
    REQUIRE_FALSE(dut.qp_reset_ready_o);
  }
}
