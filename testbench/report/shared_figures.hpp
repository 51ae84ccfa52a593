#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "testbench/report/packet_figures.hpp"
#include "testbench/report/payload_figures.hpp"
#include "testbench/report/request_figures.hpp"
#include "testbench/report/time_series.hpp"
#include "testbench/timeline/block_usage.hpp"

namespace rnic::testbench {

/// How long at least one work request of a send queue was open, at any host.
class WorkTime {
 public:
  void begin(std::uint64_t now_ps);
  void end(std::uint64_t now_ps);
  [[nodiscard]] bool open() const { return requests_ != 0; }
  /// Up to `now_ps`.
  [[nodiscard]] std::uint64_t total_ps(std::uint64_t now_ps) const;
  /// How much of the time from `from_ps` to `now_ps` belongs to the work that is open, or that ended last.
  [[nodiscard]] std::uint64_t since_ps(std::uint64_t from_ps, std::uint64_t now_ps) const;
  [[nodiscard]] std::uint64_t first_ps() const { return first_; }
  [[nodiscard]] std::uint64_t last_ps() const { return last_; }

 private:
  std::uint64_t requests_ = 0, since_ = 0, total_ = 0, first_ = 0, last_ = 0;
};

/// Which series of SharedFigures it is: payload of a queue pair's requests that a host accepted from the wire, or from
/// its own NIC without the wire (loopback); bytes that a host sent on the wire; bytes on its PCI Express to the NIC and
/// to the host.
enum class SeriesKind : std::uint8_t { kPayload, kLoopback, kWire, kToNic, kToHost };
struct SeriesName {
  /// As `host`: the requester is none of the NICs of the run (a port that is connected to the outside, or the
  /// testbench).
  static constexpr std::uint8_t kOutside = 0xff;

  SeriesKind kind{};
  std::uint8_t to{}, host{}, qp{};  ///< `to`: the receiver of the payload; host, qp: the requester
  [[nodiscard]] std::uint32_t key() const {
    return std::uint32_t{static_cast<std::uint8_t>(kind)} << 24 | std::uint32_t{to} << 16 | std::uint32_t{host} << 8 |
           qp;
  }
  [[nodiscard]] static SeriesName of(std::uint32_t key) {
    return {static_cast<SeriesKind>(key >> 24), static_cast<std::uint8_t>(key >> 16),
            static_cast<std::uint8_t>(key >> 8), static_cast<std::uint8_t>(key)};
  }
};

/// What all hosts of a run add to.
struct SharedFigures {
  static constexpr std::size_t kMostHosts = 16;

  std::function<bool(unsigned host, std::uint8_t qp)> is_program;  ///< RunReport::only; empty: all are
  RequestFigures requests, other_requests;
  TimeSeries series;
  PayloadFigures payload{series};
  WorkTime work;
  std::array<PacketFigures, kMostHosts> packets;  ///< Of each host
  std::array<BlockUsage, kMostHosts> usage;       ///< Of each NIC, counted while there is work

  void work_begins(std::uint64_t now_ps);
  void work_ends(std::uint64_t now_ps);

 private:
  void switch_usage();
};

}  // namespace rnic::testbench
