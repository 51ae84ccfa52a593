#include <catch2/catch.hpp>

#include <cstring>
#include <memory>

#include "driver/remote/machine_clock.hpp"

using rnic::remote::MachineClock;

// What a process is told of time: docs/server.md, Time.

namespace {

std::unique_ptr<MachineClock> fresh_clock() {
  // As in a fresh memfd.
  auto clock = std::make_unique<MachineClock>();
  std::memset(static_cast<void*>(clock.get()), 0, sizeof *clock);
  return clock;
}

/// The time that `clock` says when it is `outside` there.
std::optional<std::uint64_t> told(const MachineClock& clock, std::uint64_t outside) {
  return clock.read([&] { return outside; });
}

}  // namespace

TEST_CASE("the clock stands, or goes on with the time outside") {
  const auto clock = fresh_clock();
  CHECK(told(*clock, 5'000) == 0u);
  clock->set(700, 0);
  CHECK(told(*clock, 5'000) == 700u);
  CHECK(told(*clock, 9'000) == 700u);
  clock->set(800, 6'000);
  CHECK(told(*clock, 5'999) == 800u);
  CHECK(told(*clock, 6'000) == 800u);
  CHECK(told(*clock, 6'041) == 841u);
}

TEST_CASE("the clock goes on no further than it may") {
  const auto clock = fresh_clock();
  clock->set(800, 6'000, 50);
  CHECK(told(*clock, 6'041) == 841u);
  CHECK(told(*clock, 6'050) == 850u);
  CHECK(told(*clock, 9'000) == 850u);
}

TEST_CASE("nobody is told a time while the machine holds the clock") {
  const auto clock = fresh_clock();
  clock->set(800, 6'000);
  clock->hold();
  CHECK_FALSE(told(*clock, 7'000));
  clock->hold();
  CHECK_FALSE(told(*clock, 7'000));
  clock->set(1'900, 0);
  CHECK(told(*clock, 7'200) == 1'900u);
}

TEST_CASE("who has begun to look when the machine holds the clock looks again, or would be told what is yet to come") {
  const auto clock = fresh_clock();
  clock->set(800, 6'000);
  // The reader has seen that time outside counts, and is stopped before it looks at that.
  const auto late = clock->read([&] {
    clock->hold();
    return 9'000u;
  });
  CHECK_FALSE(late);
  clock->set(1'000, 0);
  CHECK(told(*clock, 9'000) == 1'000u);
}
