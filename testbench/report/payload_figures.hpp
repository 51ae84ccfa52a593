#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "testbench/report/time_series.hpp"

namespace rnic::testbench {

/// The payload that receivers accepted, in series of a TimeSeries. Payload counts when its request succeeds: that of a
/// request which fails later (refused in the middle of its message, or never acknowledged) is discarded.
class PayloadFigures {
 public:
  /// Payload of one packet. Times are picoseconds.
  struct Part {
    std::uint32_t series{};  ///< SeriesName::key
    std::uint32_t psn{};
    std::uint64_t from{}, to{}, bytes{};
  };

  explicit PayloadFigures(TimeSeries& series) : series_(series) {}

  /// A packet was accepted for an open request of queue pair `qp` of host `host`, the requester.
  void hold(unsigned host, std::uint8_t qp, const Part& part) { held_[{host, qp}].push_back(part); }
  /// The request of the PSNs `first` to `last` ended. Older parts count; parts of later requests stay held.
  void settle(unsigned host, std::uint8_t qp, std::uint32_t first, std::uint32_t last, bool good);
  /// A packet whose request has succeeded already, or is not known.
  void count(const Part& part) { series_.add(part.series, part.from, part.to, part.bytes); }

 private:
  TimeSeries& series_;
  std::map<std::pair<unsigned, std::uint8_t>, std::vector<Part>> held_;
};

}  // namespace rnic::testbench
