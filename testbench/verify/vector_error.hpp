#pragma once

#include <stdexcept>

namespace rnic::testbench {

/// A vector file that is not what docs/vectors.md says; what() names the file and the place.
class VectorError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rnic::testbench
