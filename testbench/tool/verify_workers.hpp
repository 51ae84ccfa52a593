#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "testbench/verify/vector.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

using VectorDone = std::function<void(std::size_t index, const VectorOutcome& outcome)>;

/// Runs all vectors, `jobs` at a time, each group in a process of its own (there is one World a process). `done` is
/// called in the order of the vectors; what comes out does not depend on `jobs`. Throws VectorError for a frame vector
/// that is malformed, std::system_error when no process can be made, std::runtime_error when one ends early.
void run_vectors(const std::vector<Vector>& vectors, const WorldOptions& options, unsigned jobs,
                 const VectorDone& done);

}  // namespace rnic::testbench
