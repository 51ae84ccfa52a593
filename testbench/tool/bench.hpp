#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "testbench/world.hpp"

namespace rnic::testbench {

/// One figure of the benchmark.
struct BenchFigure {
  std::string key;   ///< Name in the JSON file
  std::string text;  ///< What was measured
  std::string unit;
  double value = 0;
  bool wall_clock = false;  ///< Depends on the machine; all others are exact for a seed
  /// A time, or what a rate leaves for each message, in cycles of the NIC's clock. 0: the figure is neither.
  double cycles = 0;
};

/// Measures everything, or the figures with the keys of `only`, each on hosts as new. Simulated time only, but for
/// simulated_cycles_per_second and those of programs through rnic serve. With `list` nothing is measured, and every
/// value is 0. An interrupt (interrupt.hpp) ends it with what was measured by then. `done(figures, of)` is called after
/// each measurement. Throws what World::run throws, EndpointError, and UsageError for a key that is none.
std::vector<BenchFigure> run_bench(World& world, const WorldOptions& options, const std::vector<std::string>& only,
                                   bool list = false, const std::function<void(std::size_t, std::size_t)>& done = {});

}  // namespace rnic::testbench
