#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "testbench/limits/limits.hpp"
#include "testbench/tool/bench_streams.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// What `rnic bench --sweep` varies; the rest stays.
struct SweepOptions {
  std::string over;        ///< One of sweep_names()
  std::vector<double> at;  ///< Its values; empty: those of default_values
  /// Instead of what the sweep has.
  std::optional<std::uint64_t> message;
  std::optional<std::uint32_t> qps, mtu;
};

/// message, qps, mtu, loss, rtt, pcie-read.
[[nodiscard]] const std::vector<std::string>& sweep_names();
/// What the values of this sweep are, with their unit: "message, bytes".
[[nodiscard]] std::string axis_of(const std::string& over);
[[nodiscard]] std::vector<double> default_values(const std::string& over);

/// One kind of stream, one way or both, at one value.
struct SweepRow {
  double at = 0;
  Stream stream;
  StreamResult result;
  Limit limit;
  std::uint64_t lost = 0;  ///< Packets with data that the wire dropped, of each direction the mean
  /// Of one message with nothing beside it, nanoseconds: the least and the median of some, and what it cannot be below.
  /// Of a stream in one direction alone.
  std::uint64_t latency_ns = 0, median_ns = 0;
  double least_ns = 0;

  [[nodiscard]] std::string what() const;  ///< "Write", "Read both ways"
};

/// Measures Writes and Reads, one way and both ways, at each value. `done(rows, of)` is called after each measurement.
/// An interrupt (interrupt.hpp) ends it with the values that are whole by then. Throws as run_stream, and UsageError
/// for a value that the sweep cannot have.
std::vector<SweepRow> run_sweep(World& world, const WorldOptions& options, const SweepOptions& sweep,
                                const std::function<void(std::size_t, std::size_t)>& done);

}  // namespace rnic::testbench
