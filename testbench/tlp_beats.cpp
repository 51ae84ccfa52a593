#include "testbench/tlp_beats.hpp"

#include <algorithm>
#include <utility>

namespace rnic::testbench {

void BeatCutter::start(std::uint64_t address, std::vector<std::uint8_t> data) {
  active_ = true;
  lane_ = address % kLanes;
  position_ = 0;
  data_ = std::move(data);
}

std::size_t BeatCutter::beat_bytes() const { return std::min(kLanes - lane_, data_.size() - position_); }

void BeatCutter::write_lanes(std::span<std::uint8_t, kLanes> lanes) const {
  if (beat_bytes() < kLanes) std::fill(lanes.begin(), lanes.end(), kUndefined);
  std::copy_n(data_.data() + position_, beat_bytes(), lanes.data() + lane_);
}

void BeatCutter::advance() {
  position_ += beat_bytes();
  lane_ = 0;
  active_ = position_ < data_.size();
}

void BeatJoiner::start(std::uint64_t address, std::size_t bytes) {
  active_ = true;
  lane_ = address % BeatCutter::kLanes;
  bytes_ = bytes;
  data_.clear();
  data_.reserve(bytes);
}

bool BeatJoiner::take(std::span<const std::uint8_t, BeatCutter::kLanes> lanes) {
  const std::size_t count = std::min(BeatCutter::kLanes - lane_, bytes_ - data_.size());
  const auto from = lanes.begin() + static_cast<std::ptrdiff_t>(lane_);
  data_.insert(data_.end(), from, from + static_cast<std::ptrdiff_t>(count));
  lane_ = 0;
  return data_.size() == bytes_;
}

std::vector<std::uint8_t> BeatJoiner::finish() {
  active_ = false;
  return std::move(data_);
}

}  // namespace rnic::testbench
