#include <Vearliest_deadline.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tests/support/rtl_bench.hpp"

// rtl/completion/earliest_deadline.sv with times of 8 bits, before an owner of eight timers that looks at one in a
// cycle, as qp_timer and cq_timer do: no timer is later than what it says, and it says no more than is true.
using namespace rnic::test;

namespace {
constexpr unsigned kTimers = 8;

struct Timer {
  bool runs = false;
  std::uint8_t deadline = 0;
};
bool is_before(std::uint8_t a, std::uint8_t b) { return static_cast<std::int8_t>(a - b) < 0; }

/// `late`: the result of a look comes in the next cycle, that of the last one in the first of the next round.
struct Owner {
  explicit Owner(bool late_looks) : late(late_looks) {
    bench.dut->runs_i = bench.dut->set_valid_i = bench.dut->left_valid_i = bench.dut->first_i = bench.dut->last_i = 0;
    bench.reset();
  }
  [[nodiscard]] bool any() const {
    return std::any_of(timers.begin(), timers.end(), [](const Timer& timer) { return timer.runs; });
  }
  [[nodiscard]] std::optional<std::uint8_t> oldest() const {
    std::optional<std::uint8_t> found;
    for (const auto& timer : timers) {
      if (timer.runs && (!found || is_before(timer.deadline, *found))) found = timer.deadline;
    }
    return found;
  }
  void set(unsigned timer, std::uint8_t deadline) { to_set = {timer, deadline}; }
  /// One cycle; `expires`: what is due when it is looked at ends, else it is left.
  void tick(bool expires) {
    auto& dut = *bench.dut;
    const unsigned slot = at % kTimers;
    now = static_cast<std::uint8_t>(at / kTimers);
    dut.now_i = now;
    dut.runs_i = any();
    dut.first_i = slot == 0;
    dut.last_i = slot == (late ? 0 : kTimers - 1);
    dut.set_valid_i = to_set.has_value();
    dut.set_deadline_i = to_set ? to_set->second : 0;
    dut.left_valid_i = 0;
    dut.eval();
    sweeping = dut.sweeping_o;
    if (const auto first = oldest()) {
      REQUIRE_FALSE(is_before(*first, dut.earliest_o));
      REQUIRE(sweeping == !is_before(now, dut.earliest_o));
    } else {
      REQUIRE_FALSE(sweeping);
    }
    // A timer that is set as it is looked at shows its old deadline; in a late look it shows none.
    std::optional<unsigned> look = late ? pending : sweeping ? std::optional(slot) : std::nullopt;
    if (look && timers[*look].runs) {
      const bool is_set = to_set && to_set->first == *look;
      auto& timer = timers[*look];
      const std::uint8_t seen = timer.deadline;
      if (!is_before(now, seen) && expires && !is_set)
        timer.runs = false;
      else
        dut.left_valid_i = 1, dut.left_deadline_i = seen;
    }
    pending.reset();
    if (sweeping && !(to_set && to_set->first == slot)) pending = slot;
    if (to_set) timers[to_set->first] = {true, to_set->second};
    to_set.reset();
    bench.tick();
    ++at;
  }

  Bench<Vearliest_deadline> bench{seed()};
  bool late;
  std::array<Timer, kTimers> timers{};
  std::optional<std::pair<unsigned, std::uint8_t>> to_set;
  std::optional<unsigned> pending;
  std::uint64_t at = 0;
  std::uint8_t now = 0;
  bool sweeping = false;
};
}  // namespace

TEST_CASE("earliest_deadline: no timer is before what it says, and after a round that nobody disturbs it is the oldest",
          "[rtl]") {
  const bool late = GENERATE(false, true);
  Owner owner(late);
  auto& bench = owner.bench;
  unsigned rested = 0, exact = 0, undisturbed = 0;
  bool swept = false;
  for (int cycle = 0; cycle < 200'000; ++cycle) {
    const bool calm = cycle / 2000 % 2 != 0;
    ++undisturbed;
    if (bench.chance(calm ? 0.005 : 0.1)) {
      // Now is what may just be due, in the middle of a round.
      owner.set(static_cast<unsigned>(bench.uniform(0, kTimers - 1)),
                static_cast<std::uint8_t>(owner.at / kTimers + bench.uniform(0, bench.chance(0.5) ? 2 : 40)));
      undisturbed = 0;
    }
    if (bench.chance(calm ? 0.002 : 0.02)) {
      owner.timers[bench.uniform(0, kTimers - 1)].runs = false;
      undisturbed = 0;
    }
    const auto oldest = owner.oldest();
    owner.tick(bench.chance(0.7));
    if (oldest && swept && !owner.sweeping && undisturbed > 3 * kTimers) {
      REQUIRE(owner.bench.dut->earliest_o == *oldest);
      ++exact;
    }
    rested += oldest && !owner.sweeping;
    swept = owner.sweeping;
  }
  CHECK(rested > 10'000);
  CHECK(exact > 100);
}

TEST_CASE("earliest_deadline: a round for nothing is followed by rest until the oldest that is left", "[rtl]") {
  const bool late = GENERATE(false, true);
  Owner owner(late);
  auto& dut = *owner.bench.dut;
  const auto rounds = [&](unsigned count) {
    unsigned swept = 0;
    for (unsigned i = 0; i < count * kTimers; ++i) {
      owner.tick(true);
      swept += owner.sweeping;
    }
    return swept;
  };
  owner.set(3, 10);
  owner.tick(true);
  owner.set(6, 20);
  owner.tick(true);
  owner.timers[3].runs = false;  // taken back
  while (owner.at < 10 * kTimers) {
    owner.tick(true);
    CHECK_FALSE(owner.sweeping);
  }
  CHECK(rounds(1) == kTimers);
  // The last look of late ones falls into the next round.
  CHECK(rounds(9) <= (late ? 1 : 0));
  CHECK(dut.earliest_o == 20);
  // When the last has been found, none runs.
  CHECK(rounds(1) == (late ? kTimers : kTimers - 1));
  CHECK_FALSE(owner.timers[6].runs);
}
