#include "testbench/report/time_series.hpp"

#include <algorithm>

namespace rnic::testbench {

void TimeSeries::add(std::uint32_t series, std::uint64_t from_ps, std::uint64_t to_ps, std::uint64_t amount) {
  if (!origin_) origin_ = from_ps;
  const std::uint64_t from = from_ps - std::min(from_ps, *origin_);
  const std::uint64_t to = std::max(to_ps - std::min(to_ps, *origin_), from);
  while (to >= width_ * kBins) widen();
  Bins& bins = series_[series];
  const std::size_t first = from / width_, last = to / width_;
  std::uint64_t left = amount;
  for (std::size_t bin = first; bin < last; ++bin) {
    const std::uint64_t part = (bin + 1) * width_ - std::max(from, bin * width_);
    const std::uint64_t share = std::min(left, amount * part / (to - from));
    bins[bin] += share;
    left -= share;
  }
  bins[last] += left;
  used_ = std::max(used_, last + 1);
}

void TimeSeries::widen() {
  width_ *= 2;
  used_ = (used_ + 1) / 2;
  for (auto& [key, bins] : series_) {
    for (std::size_t i = 0; i < kBins / 2; ++i) bins[i] = bins[2 * i] + bins[2 * i + 1];
    std::fill(bins.begin() + kBins / 2, bins.end(), 0);
  }
}

}  // namespace rnic::testbench
