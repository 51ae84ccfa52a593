#pragma once

#include <cstdint>
#include <vector>

namespace rnic::testbench {

/// Order statistics of latencies, nanoseconds of simulated time.
struct LatencySummary {
  std::uint64_t minimum = 0, median = 0, p99 = 0, p999 = 0;
};

/// Nearest-rank percentiles. All zero for an empty list.
LatencySummary summarize(std::vector<std::uint64_t> samples);

/// The share of the wire's bits that can be payload of RC packets: `message` bytes cut at `mtu`, each packet with
/// Ethernet (14), IP, UDP (8), BTH (12), ICRC (4), frame check sequence, preamble and gap (24), and the RETH (16) of
/// the first.
double wire_payload_share(std::uint64_t message, std::uint32_t mtu, bool ipv6);

}  // namespace rnic::testbench
