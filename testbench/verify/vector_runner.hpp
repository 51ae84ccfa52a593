#pragma once

#include <optional>
#include <string>
#include <vector>

#include "testbench/verify/vector.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// Runs vectors of requests one after the other on a World, each on hosts as new.
class VectorRunner {
 public:
  /// `world` must outlive the runner; `options` are those it is reset with.
  VectorRunner(World& world, WorldOptions options) : world_(world), options_(std::move(options)) {}

  /// Never throws for a vector that fails: a failed assertion or a hang of the RTL is a failure with that message.
  VectorOutcome run(const Vector& vector);

 private:
  World& world_;
  WorldOptions options_;
};

}  // namespace rnic::testbench
