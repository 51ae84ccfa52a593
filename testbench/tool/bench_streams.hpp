#pragma once

#include <cstdint>

#include "testbench/tool/bench_pairs.hpp"
#include "testbench/tool/statistics.hpp"
#include "testbench/tool/transfer.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// Messages of one size from one host, or from both at once, as fast as they go.
struct Stream {
  Transfer::Direction direction = Transfer::Direction::kWrite;
  std::uint64_t message = 64 << 10;  ///< Bytes
  std::uint64_t messages = 64;       ///< Of each host; a multiple of four
  std::uint32_t mtu = kBenchMtu;
  std::uint32_t qps = 1;
  std::uint32_t queue_depth = 32;  ///< Of each queue pair
  std::uint32_t outstanding = 32;  ///< On each, at most queue_depth
  bool inline_data = false;        ///< Of Writes
  bool both_ways = false;
};

/// Of each direction: from the first posting to the last completion, of either host.
struct StreamResult {
  std::uint64_t bytes = 0, messages = 0, nanoseconds = 0;
  LatencySummary latency;  ///< From posting to completion, in full queues

  [[nodiscard]] double gbps() const { return 8.0 * static_cast<double>(bytes) / static_cast<double>(nanoseconds); }
  [[nodiscard]] double mmps() const {
    return static_cast<double>(messages) * 1000.0 / static_cast<double>(nanoseconds);
  }
};
/// With up to four threads of each host. All messages of both hosts fit in kBenchBufferBytes. Throws as with_pairs;
/// so do all of these.
StreamResult run_stream(World& world, const WorldOptions& options, const Stream& stream);

/// `bytes` in messages of 64 KiB over one queue pair: share of what the wire allows. `cycles_per_second`, unless null:
/// of each NIC, by the clock on the wall.
double goodput_fraction(World& world, const WorldOptions& options, Transfer::Direction direction,
                        double* cycles_per_second, std::uint32_t mtu = kBenchMtu,
                        std::uint64_t bytes = kBenchBufferBytes);
/// 8-byte Reads or inline Writes over 16 queue pairs, four threads, each queue pair with up to `outstanding`: messages
/// per microsecond, of each direction.
double small_message_rate(World& world, const WorldOptions& options, Transfer::Direction direction,
                          std::uint32_t outstanding, bool both_ways = false);
/// Both hosts stream Writes at once, over one queue pair: share of what the wire allows, the mean of both directions,
/// each by its own time.
double bidirectional_goodput_fraction(World& world, const WorldOptions& options);
/// The same until both are done, and ACKs are counted in what the wire allows (docs/limits.md).
double goodput_fraction_both_ways(World& world, const WorldOptions& options);

}  // namespace rnic::testbench
