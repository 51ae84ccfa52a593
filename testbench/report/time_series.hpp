#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace rnic::testbench {

/// Amounts over simulated time, several series in the same bins. There are kBins of them whatever the time: when it
/// goes beyond the last, two become one.
class TimeSeries {
 public:
  static constexpr std::size_t kBins = 256;
  static constexpr std::uint64_t kFirstWidthPs = 64'000;
  using Bins = std::array<std::uint64_t, kBins>;

  /// Spreads `amount` evenly over the time from `from_ps` to `to_ps`. The first that is added begins the first bin;
  /// what was earlier counts there. The sum of the bins is exact.
  void add(std::uint32_t series, std::uint64_t from_ps, std::uint64_t to_ps, std::uint64_t amount);

  [[nodiscard]] std::uint64_t origin_ps() const { return origin_.value_or(0); }
  [[nodiscard]] std::uint64_t width_ps() const { return width_; }
  /// Bins up to the last in which there is something.
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] const std::map<std::uint32_t, Bins>& all() const { return series_; }

 private:
  void widen();

  std::optional<std::uint64_t> origin_;
  std::uint64_t width_ = kFirstWidthPs;
  std::size_t used_ = 0;
  std::map<std::uint32_t, Bins> series_;
};

}  // namespace rnic::testbench
