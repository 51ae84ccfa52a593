#pragma once

#include <optional>
#include <string>
#include <vector>

#include "testbench/barrier_switch.hpp"
#include "testbench/world.hpp"

namespace rnic::test {

struct MemoryOrderOutcome {
  std::string wrong;                              ///< Empty: all was right
  std::vector<testbench::BarrierPlace> barriers;  ///< That the drivers have passed
};

/// Requests of every kind, events and commands between two hosts, under `options`, without the barrier `out`. In a
/// process of its own, because then anything may happen to it.
[[nodiscard]] MemoryOrderOutcome work_apart(const testbench::WorldOptions& options,
                                            const std::optional<testbench::BarrierPlace>& out);

}  // namespace rnic::test
