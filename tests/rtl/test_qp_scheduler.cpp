#include <Vqp_scheduler.h>

#include <bitset>
#include <map>

#include "tests/support/rtl_bench.hpp"

// rtl/sq/qp_scheduler.sv: no event is lost, no QP has two turns at a time, turns are fair, forget leaves nothing.
using namespace rnic::test;

namespace {
constexpr int kWakes = 3;
constexpr int kQps = 256;

/// One engine with `slots` turns under way, and a model of what each QP is owed.
struct Rig {
  explicit Rig(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.wake_valid_i = dut.run_ready_i = dut.done_valid_i = dut.forget_valid_i = 0;
    dut.forget_qp_i = 0;
    bench.reset();
  }
  /// One cycle: `wakes` are QPs to wake (at most kWakes), `ready` takes an offered turn, `done` ends a turn.
  void cycle(const std::vector<int>& wakes, bool ready, int done = -1, bool again = false) {
    auto& dut = *bench.dut;
    std::uint32_t valid = 0, qps = 0;
    for (std::size_t i = 0; i < wakes.size(); ++i) {
      valid |= 1u << i;
      qps |= static_cast<std::uint32_t>(wakes[i]) << (8 * i);
    }
    dut.wake_valid_i = valid;
    dut.wake_qp_i = qps;
    dut.run_ready_i = ready;
    dut.done_valid_i = done >= 0;
    dut.done_qp_i = done >= 0 ? done : 0;
    dut.done_again_i = again;
    dut.clk_i = 0;
    dut.eval();
    taken = dut.run_valid_o && ready ? dut.run_qp_o : -1;
    forget_busy = dut.forget_busy_o;
    bench.tick();
  }
  Bench<Vqp_scheduler> bench;
  int taken = -1;
  bool forget_busy = false;
};
}  // namespace

TEST_CASE("qp_scheduler: every event is followed by a turn that begins after it; one turn of a QP at a time", "[rtl]") {
  Rig rig(seed());
  auto& bench = rig.bench;
  std::array<bool, kQps> owed{};
  std::map<int, int> turns;  // QP -> cycles until its turn ends
  int served = 0;
  for (int cycle = 0; cycle < 40000; ++cycle) {
    const bool quiet = cycle > 36000;  // everything owed must be served
    std::vector<int> wakes;
    const int range = (cycle / 4000) % 2 ? kQps - 1 : 5;
    for (int i = 0; i < kWakes; ++i) {
      if (!quiet && bench.chance(0.1)) wakes.push_back(static_cast<int>(bench.uniform(0, range)));
    }
    int done = -1;
    bool again = false;
    for (auto& [qp, left] : turns) {
      if (done < 0 && left == 0) {
        done = qp;
        again = !quiet && bench.chance(0.3);
      }
      if (left > 0) --left;
    }
    rig.cycle(wakes, turns.size() < 4 && bench.chance(0.7), done, again);
    if (rig.taken >= 0) {
      REQUIRE(turns.count(rig.taken) == 0);
      turns[rig.taken] = static_cast<int>(bench.uniform(0, 12));
      owed[static_cast<std::size_t>(rig.taken)] = false;
      ++served;
    }
    if (done >= 0) {
      turns.erase(done);
      if (again) owed[static_cast<std::size_t>(done)] = true;
    }
    // An event in the cycle in which a turn is taken is not covered by that turn.
    for (const int qp : wakes) owed[static_cast<std::size_t>(qp)] = true;
  }
  CHECK(turns.empty());
  CHECK(std::none_of(owed.begin(), owed.end(), [](bool b) { return b; }));
  CHECK(served > 5000);
}

TEST_CASE("qp_scheduler: QPs that always want a turn get turns round robin", "[rtl]") {
  Rig rig(seed(2));
  const std::vector<int> active = {0, 1, 2, 15, 16, 17, 31, 64, 100, 254, 255};
  for (const int qp : active) rig.cycle({qp}, false);
  std::map<int, int> last;
  std::map<int, int> count;
  int pending = -1, turn = 0;
  for (int cycle = 0; cycle < 3000; ++cycle) {
    rig.cycle({}, true, pending, true);
    pending = rig.taken;
    if (rig.taken < 0) continue;
    ++turn;
    if (last.count(rig.taken)) REQUIRE(turn - last[rig.taken] <= static_cast<int>(active.size()) + 1);
    last[rig.taken] = turn;
    ++count[rig.taken];
  }
  REQUIRE(count.size() == active.size());
  for (const auto& [qp, n] : count) CHECK(n > turn / static_cast<int>(active.size()) - 3);
  CHECK(turn > 2500);  // a turn a cycle
}

TEST_CASE("qp_scheduler: who has had a turn and wants another goes behind one that was woken meanwhile", "[rtl]") {
  Rig rig(seed(4));
  for (int first = 0; first < kQps; ++first) {
    const int second = static_cast<int>((static_cast<unsigned>(first) + rig.bench.uniform(1, 255)) % kQps);
    const auto next = [&] {
      do rig.cycle({}, true);
      while (rig.taken < 0);
      return rig.taken;
    };
    rig.cycle({first}, true);
    REQUIRE(next() == first);
    rig.cycle({second}, true, first, true);
    REQUIRE(next() == second);
    REQUIRE(next() == first);
    rig.cycle({}, true, first);
    rig.cycle({}, true, second);
  }
}

TEST_CASE("qp_scheduler: forget drops events and tells when the last turn is over", "[rtl]") {
  Rig rig(seed(3));
  auto& dut = *rig.bench.dut;
  for (int round = 0; round < 200; ++round) {
    const int qp = static_cast<int>(rig.bench.uniform(0, kQps - 1));
    const bool running = rig.bench.chance(0.5);
    rig.cycle({qp}, true);
    if (running) {
      while (rig.taken != qp) rig.cycle({}, true);
      rig.cycle({qp}, false);
    }
    dut.forget_valid_i = 1;
    dut.forget_qp_i = static_cast<std::uint8_t>(qp);
    for (int i = 0; i < 3; ++i) rig.cycle({qp}, false);
    if (running) {
      CHECK(rig.forget_busy);
      rig.cycle({}, false, qp, true);
    } else if (rig.forget_busy) {  // it was already offered
      rig.cycle({}, true);
      REQUIRE(rig.taken == qp);
      rig.cycle({}, false, qp, false);
    }
    rig.cycle({}, false);
    CHECK_FALSE(rig.forget_busy);
    dut.forget_valid_i = 0;
    for (int i = 0; i < 6; ++i) {
      rig.cycle({}, true);
      REQUIRE(rig.taken == -1);
    }
  }
}
