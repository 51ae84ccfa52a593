#pragma once

#include <string>

#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_reader.hpp"

namespace rnic::testbench {

/// A step of a vector with that setup; `place`: what messages call it, "step 3". Throws VectorError.
VectorStep read_vector_step(VectorReader from, const VectorSetup& setup, const std::string& place);

}  // namespace rnic::testbench
