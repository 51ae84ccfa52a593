#pragma once

#include <algorithm>
#include <cstdint>

#include "testbench/roce_frame.hpp"

namespace rnic::test {

using roce::kCredits;
using roce::kNoCredits;

/// Code of a responder that has `wqes` receive WQEs posted, 0 to 32768: it promises as many as it can, and no more than
/// there are.
inline std::uint8_t credit_code(std::uint32_t wqes) {
  return static_cast<std::uint8_t>(std::upper_bound(kCredits.begin(), kCredits.end(), wqes) - kCredits.begin() - 1);
}

}  // namespace rnic::test
