#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/random.hpp"
#include "testbench/report/sketch.hpp"
#include "testbench/report/waterfall.hpp"

namespace rnic::testbench {

/// The work requests of a run, by what they do: how many there were, how long they took, and where the time went.
/// Memory is bounded: latencies and steps are sketches, and of each kind a fair sample of whole requests is kept.
class RequestFigures {
 public:
  /// So many requests of each kind are kept; below that all, and percentiles of latencies are
  /// exact.
  static constexpr std::size_t kKept = 4096;

  /// A request of a host with these flights is over.
  void add(const Request& request, const Flights& flights);
  [[nodiscard]] std::uint64_t requests() const;
  /// [{"kind", "count", "failed", "unfinished", "repeated", "bytes", "latency": {...}, "median": {...}}]. Times are
  /// nanoseconds, of the median since `epoch_ps`.
  [[nodiscard]] nlohmann::ordered_json json(std::uint64_t epoch_ps) const;

 private:
  struct Kept {
    std::uint64_t latency_ns{};
    Request request;
    Flights flights;
  };
  struct Kind {
    std::uint64_t count = 0, failed = 0, unfinished = 0, repeated = 0, bytes = 0;
    Sketch latency_ns{Sketch::kLatencyStepBits};
    std::vector<Sketch> steps;  ///< As in steps_of, nanoseconds
    std::vector<Kept> kept;
  };

  void keep(Kind& kind, const Request& request, const Flights& flights, std::uint64_t latency_ns);
  [[nodiscard]] static std::vector<const Kept*> sorted(const Kind& kind);
  [[nodiscard]] static const Kept& request_at(const Kind& kind, const std::vector<const Kept*>& order,
                                              std::uint64_t permille);
  [[nodiscard]] static nlohmann::ordered_json median_json(const Kind& kind, const Kept& middle, std::uint64_t epoch_ps);

  std::map<std::string, Kind> kinds_;
  model::Random random_{0x7265706f7274};
};

}  // namespace rnic::testbench
