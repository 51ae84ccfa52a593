#include "testbench/tool/statistics.hpp"

#include <algorithm>

#include "testbench/limits/limits.hpp"

namespace rnic::testbench {

LatencySummary summarize(std::vector<std::uint64_t> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](std::uint64_t permille) { return samples[(samples.size() * permille + 999) / 1000 - 1]; };
  return {samples.front(), rank(500), rank(990), rank(999)};
}

double wire_payload_share(std::uint64_t message, std::uint32_t mtu, bool ipv6) {
  return static_cast<double>(message) / static_cast<double>(write_wire_bytes(message, mtu, ipv6));
}

}  // namespace rnic::testbench
