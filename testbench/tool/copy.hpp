#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "testbench/nic_counters.hpp"
#include "testbench/tool/statistics.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

struct CopyOptions {
  std::filesystem::path file;
  std::uint64_t message = 65536;      ///< Bytes of one Write or Read
  std::uint32_t qps = 1;              ///< Queue pairs
  std::uint32_t mtu = 4096;           ///< Bytes
  std::uint8_t ack_timeout = 8;       ///< 4.096 us * 2^n
  std::uint64_t round = 64ULL << 20;  ///< Most bytes of the file that are in memory at once
};

/// One direction of the copy.
struct CopyPhase {
  std::uint64_t messages = 0, bytes = 0;
  std::uint64_t nanoseconds = 0;  ///< From the first request posted to the last completion, all rounds
  LatencySummary latency;         ///< Of one message, from posting to completion seen, nanoseconds
  /// Payload bits per nanosecond.
  [[nodiscard]] double goodput_gbps() const {
    return nanoseconds == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(nanoseconds);
  }
};

struct CopyReport {
  CopyPhase write, read;
  std::string file_sha256, written_sha256, read_sha256;
  /// One part of the run, all of it: simulated time, cycles of each NIC, and the wall time that they took.
  struct Interval {
    std::uint64_t simulated_ns = 0, cycles = 0;
    double wall_seconds = 0;
    [[nodiscard]] double cycles_per_second() const {
      return wall_seconds > 0 ? static_cast<double>(cycles) / wall_seconds : 0;
    }
  };
  Interval setup;                                     ///< Queue pairs made and connected
  Interval transfer;                                  ///< The file there and back
  Interval tear_down;                                 ///< Everything given back
  std::array<NicCounters, World::kHosts> counters{};  ///< Of both NICs, at the end of the copy
  std::uint64_t file_bytes = 0;
  bool interrupted = false;  ///< By the user: phases and intervals are those up to then, and there are no SHA-256
  [[nodiscard]] bool equal() const {
    return !interrupted && file_sha256 == written_sha256 && file_sha256 == read_sha256;
  }
};

/// Copies the file from host A to host B by RDMA Write, and back from A's memory to B by RDMA Read, in rounds.
/// An interrupt ends it with what was done by then. Throws what World::run throws otherwise, and std::runtime_error for
/// a file that cannot be read or a request that fails.
CopyReport run_copy(World& world, const CopyOptions& options);

}  // namespace rnic::testbench
