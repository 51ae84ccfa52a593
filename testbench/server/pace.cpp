#include "testbench/server/pace.hpp"

namespace rnic::testbench {

void Pace::begin(std::uint64_t outside_ns) {
  since_ns_ = outside_ns;
  spent_ns_ = 0;
}

std::uint64_t Pace::early_ns(std::uint64_t outside_ns) {
  // More time outside has passed than may be made up for: it is forgotten.
  if (outside_ns > since_ns_ + spent_ns_ + kMostNs) begin(outside_ns - kMostNs);
  const std::uint64_t allowed_ns = outside_ns - since_ns_;
  return spent_ns_ >= allowed_ns ? spent_ns_ - allowed_ns + 1 : 0;
}

}  // namespace rnic::testbench
