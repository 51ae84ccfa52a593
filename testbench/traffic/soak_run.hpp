#pragma once

#include <cstdint>
#include <functional>

#include "testbench/traffic/traffic_report.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

struct SoakOptions {
  std::uint64_t cycles = 1'000'000;  ///< Clock cycles with new work; what is under way then is waited for
  TrafficOptions traffic;
  bool orderly = false;  ///< The links lose nothing, so nothing may be repaired
};

struct SoakReport {
  TrafficReport traffic;
  std::uint64_t set_up_cycles = 0;  ///< From reset until all is connected
  std::uint64_t cycles = 0;         ///< From the first request to the last completion
  std::uint64_t tear_down_cycles = 0;
  std::uint64_t iommu_faults = 0;
  bool interrupted = false;  ///< By the user, before the cycles had passed
  [[nodiscard]] bool good() const { return traffic.wrong == 0 && traffic.hung == 0; }
};

/// Random work on all queue pairs until the cycles have passed, the user interrupts, or something is wrong. `progress`
/// is called with the cycles passed. Throws what World::run throws, and EndpointError.
SoakReport run_soak(World& world, const SoakOptions& options, std::uint64_t seed,
                    const std::function<void(std::uint64_t)>& progress = {});

}  // namespace rnic::testbench
