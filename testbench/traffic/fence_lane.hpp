#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "testbench/traffic/share_lane.hpp"

namespace rnic::testbench {

/// Messages whose payload is what the Read or the atomic before them brings, which READ_FENCE makes them wait for
/// (InfiniBand specification 10.8.3.3): the peer knows what that must be.
class FenceLane final : public ShareLane {
 public:
  static constexpr std::size_t kPlaces = 4, kBytes = 4'000, kReceives = 8;

  FenceLane(const Spec& spec, MomentClock& clock, const TrafficOptions& options, std::uint64_t seed,
            TrafficReport& report);

 private:
  struct Expected {
    std::size_t bytes;
    bool atomic, write;
    std::uint64_t value;  ///< atomic: what it must have found
  };

  void next(bool last) override;
  void arrived(std::uint64_t message, const umd::Completion& completion, std::span<const std::uint8_t> buffer) override;
  [[nodiscard]] Request message(const Expected& expected, std::span<std::uint8_t> memory, std::size_t place);

  const TrafficOptions& options_;
  std::array<std::span<std::uint8_t>, kPlaces> sources_, targets_;  ///< Of the peer
  std::span<std::uint8_t> word_;                                    ///< Of the peer, for this lane alone
  std::uint64_t sum_ = 0;
  std::deque<Expected> expected_;
};

/// Writes to bytes that another Write of the same queue pair has just written: the last one counts, and the message
/// behind them finds them all there (InfiniBand specification 9.5, 10.8.3.3).
class OverwriteLane final : public ShareLane {
 public:
  static constexpr std::size_t kAreas = 2, kBytes = 3'000, kReceives = 8, kReceiveBytes = 600;

  OverwriteLane(const Spec& spec, MomentClock& clock, const TrafficOptions& options, std::uint64_t seed,
                TrafficReport& report);

 private:
  void next(bool last) override;
  void arrived(std::uint64_t message, const umd::Completion& completion, std::span<const std::uint8_t> buffer) override;
  [[nodiscard]] Request write(std::size_t area, std::size_t first, std::size_t bytes);

  const TrafficOptions& options_;
  std::array<std::span<std::uint8_t>, kAreas> areas_;       ///< Of the peer
  std::array<std::vector<std::uint8_t>, kAreas> expected_;  ///< What must be there when the message comes
};

}  // namespace rnic::testbench
