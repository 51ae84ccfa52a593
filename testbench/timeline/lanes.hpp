#pragma once

#include <cstddef>
#include <vector>

namespace rnic::testbench {

/// Tracks of one kind, side by side: what overlaps in time must not share one.
class Lanes {
 public:
  /// The first that is free.
  [[nodiscard]] unsigned take() {
    std::size_t lane = 0;
    while (lane < taken_.size() && taken_[lane]) ++lane;
    if (lane == taken_.size()) taken_.push_back(false);
    taken_[lane] = true;
    return static_cast<unsigned>(lane);
  }
  void give(unsigned lane) { taken_.at(lane) = false; }

 private:
  std::vector<bool> taken_;
};

}  // namespace rnic::testbench
