#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "testbench/verify/vector.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

using VectorDone = std::function<void(std::size_t index, const VectorOutcome& outcome)>;

/// Runs all vectors, `jobs` at a time, each group in a process of its own (there is one World a process), a single
/// vector in this one. `done` is called in the order of the vectors; what comes out does not depend on `jobs`. A vector
/// that stops the simulation, or under which its process ends (an assertion of a NIC, a crash), has failed, and those
/// behind it go on in a new process. Of several an interrupt (interrupt.hpp) leaves out the rest. Throws
/// std::system_error when no process can be made, std::runtime_error when there can be no world.
void run_vectors(const std::vector<Vector>& vectors, const WorldOptions& options, unsigned jobs,
                 const VectorDone& done);

}  // namespace rnic::testbench
