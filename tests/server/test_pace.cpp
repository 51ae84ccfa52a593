#include <catch2/catch.hpp>

#include "testbench/server/pace.hpp"

using rnic::testbench::Pace;

// Simulated time beside the time outside: docs/server.md, Time.

TEST_CASE("no more simulated time passes than time outside") {
  Pace pace;
  pace.begin(1'000);
  CHECK(pace.early_ns(1'000) == 1);
  CHECK(pace.early_ns(1'001) == 0);
  pace.passes(100);
  CHECK(pace.early_ns(1'001) == 100);
  CHECK(pace.early_ns(1'100) == 1);
  CHECK(pace.early_ns(1'101) == 0);
}

TEST_CASE("what simulated time has fallen behind is not caught up, but for a little") {
  Pace pace;
  pace.begin(0);
  const std::uint64_t later = 5'000'000'000;
  CHECK(pace.early_ns(later) == 0);
  pace.passes(Pace::kMostNs - 1);
  CHECK(pace.early_ns(later) == 0);
  pace.passes(1);
  CHECK(pace.early_ns(later) == 1);
}
