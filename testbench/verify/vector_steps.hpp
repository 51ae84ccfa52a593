#pragma once

#include <cstddef>

#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_reader.hpp"

namespace rnic::testbench {

/// Step `number` (from 1) of a vector with that setup. Throws VectorError.
VectorStep read_vector_step(VectorReader from, const VectorSetup& setup, std::size_t number);

}  // namespace rnic::testbench
