#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "model/random.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/traffic/mix_lane.hpp"
#include "testbench/traffic/mix_receives.hpp"
#include "testbench/traffic/mix_side.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// What the streams of a Traffic don't do, from one host to the other: RC queue pairs that share a receive queue, keys
/// that come and go (MixKey), a UC and a UD queue pair, and completion queues that are resized meanwhile. One thread of
/// simulated time serves it.
class TrafficMix {
 public:
  /// Throws EndpointError.
  TrafficMix(Endpoint& from, Endpoint& to, std::uint32_t number, const TrafficOptions& options, std::uint64_t seed,
             TrafficReport& report);
  ~TrafficMix();
  TrafficMix(const TrafficMix&) = delete;
  TrafficMix& operator=(const TrafficMix&) = delete;

  /// Works until `report` says that it stops; what was posted is waited for.
  void work();

 private:
  static constexpr std::uint32_t kSharedLanes = 3, kLanes = kSharedLanes + 2;

  void take_completions(MixSide& side);
  void resize(MixSide& side);

  const std::uint32_t number_;
  TrafficReport& report_;
  model::Random random_;
  MixSide from_, to_;
  std::shared_ptr<umd::SharedReceiveQueue> shared_;
  std::unique_ptr<MixReceives> receives_;
  std::deque<MixLane> lanes_;
};

}  // namespace rnic::testbench
