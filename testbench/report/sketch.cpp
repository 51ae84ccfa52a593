#include "testbench/report/sketch.hpp"

#include <algorithm>
#include <bit>

namespace rnic::testbench {

std::size_t Sketch::index_of(std::uint64_t value) const {
  if (value < 2 * steps()) return value;
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - step_bits_ - 1;
  return shift * steps() + (value >> shift);
}

Sketch::Bucket Sketch::bounds(std::size_t index) const {
  if (index < 2 * steps()) return {index, index + 1, 0};
  const std::uint64_t shift = index / steps() - 1, step = index - shift * steps();
  return {step << shift, (step + 1) << shift, 0};
}

void Sketch::add(std::uint64_t value) {
  const std::size_t index = index_of(value);
  if (index >= counts_.size()) counts_.resize(index + 1);
  ++counts_[index];
  ++count_;
  sum_ += value;
  least_ = std::min(least_, value);
  most_ = std::max(most_, value);
}

void Sketch::add(const Sketch& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
}

std::uint64_t Sketch::quantile(std::uint64_t permille) const {
  if (count_ == 0) return 0;
  // In two parts, so that nothing overflows.
  const std::uint64_t rank = count_ / 1000 * permille + (count_ % 1000 * permille + 999) / 1000;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    if (below < rank) continue;
    const Bucket bucket = bounds(i);
    return std::clamp(bucket.from + (bucket.to - bucket.from - 1) / 2, least_, most_);
  }
  return most_;
}

std::vector<Sketch::Bucket> Sketch::buckets() const {
  std::vector<Bucket> all;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    all.push_back(bounds(i));
    all.back().count = counts_[i];
  }
  return all;
}

}  // namespace rnic::testbench
