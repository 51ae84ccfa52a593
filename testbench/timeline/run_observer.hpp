#pragma once

#include <cstdint>
#include <vector>

#include "testbench/timeline/life_sink.hpp"

namespace rnic::testbench {

struct WorldOptions;

/// Wants to hear what the timeline hears of a run (WorldOptions::observers).
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// A world of `options`, as new, begins at `epoch_ps`: what was before is over. Gives a sink for each of its hosts,
  /// which last until `end`.
  [[nodiscard]] virtual std::vector<LifeSink*> begin(const WorldOptions& options, std::uint64_t epoch_ps) = 0;
  /// All has been told. `cycles`: of each NIC, since the world was new.
  virtual void end(std::uint64_t now_ps, const std::vector<std::uint64_t>& cycles) = 0;
};

}  // namespace rnic::testbench
