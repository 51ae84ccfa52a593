#include "testbench/tool/statistics.hpp"

#include <algorithm>

namespace rnic::testbench {

LatencySummary summarize(std::vector<std::uint64_t> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](std::uint64_t permille) { return samples[(samples.size() * permille + 999) / 1000 - 1]; };
  return {samples.front(), rank(500), rank(990), rank(999)};
}

double wire_payload_share(std::uint64_t message, std::uint32_t mtu, bool ipv6) {
  constexpr std::uint64_t kReth = 16;
  constexpr std::uint64_t kMinimumOnWire = 64 + 20;  // shortest frame, preamble and gap
  const std::uint64_t overhead = 14 + (ipv6 ? 40 : 20) + 8 + 12 + 4 + 24;
  const std::uint64_t packets = std::max<std::uint64_t>(1, (message + mtu - 1) / mtu);
  std::uint64_t wire = 0;
  for (std::uint64_t i = 0; i < packets; ++i) {
    const std::uint64_t payload = std::min<std::uint64_t>(mtu, message - i * mtu);
    wire += std::max(kMinimumOnWire, overhead + (i == 0 ? kReth : 0) + (payload + 3) / 4 * 4);
  }
  return static_cast<double>(message) / static_cast<double>(wire);
}

}  // namespace rnic::testbench
