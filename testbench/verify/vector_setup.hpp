#pragma once

#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_reader.hpp"

namespace rnic::testbench {

/// The `setup` of a vector. Throws VectorError.
VectorSetup read_vector_setup(VectorReader from);

}  // namespace rnic::testbench
