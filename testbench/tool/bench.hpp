#pragma once

#include <string>
#include <vector>

#include "testbench/world.hpp"

namespace rnic::testbench {

/// One figure of the benchmark.
struct BenchFigure {
  std::string key;       ///< Name in the JSON file
  std::string text;      ///< What was measured
  std::string unit;
  double value = 0;
  bool wall_clock = false;  ///< Depends on the machine; all others are exact for a seed
};

/// Measures everything, each on hosts as new. Simulated time only, but for simulated_cycles_per_second.
/// Throws what World::run throws, and EndpointError.
std::vector<BenchFigure> run_bench(World& world, const WorldOptions& options);

}  // namespace rnic::testbench
