#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/random.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/traffic/atomic_lane.hpp"
#include "testbench/traffic/cell_lane.hpp"
#include "testbench/traffic/quiet_queue.hpp"
#include "testbench/traffic/share_lane.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// Queue pairs of two hosts that share memory of one of them: atomics, cells that several write, messages that depend
/// on Reads, Writes over Writes. Its threads, one on each host, sleep until events tell them of completions, and never
/// look for themselves.
class TrafficShare {
 public:
  static constexpr std::size_t kThreads = 2;

  /// The memory is that of `to`. Throws EndpointError.
  TrafficShare(Endpoint& from, Endpoint& to, std::uint32_t number, const TrafficOptions& options, std::uint64_t seed,
               TrafficReport& report);
  ~TrafficShare();
  TrafficShare(const TrafficShare&) = delete;
  TrafficShare& operator=(const TrafficShare&) = delete;

  /// Thread 0 is that of `from`. Works until the report says that it stops; what was posted is waited for.
  void work(std::size_t thread);
  /// Those that do nothing that must be repaired, on both hosts, with a name.
  void for_each_qp(const std::function<void(const std::string&, umd::QueuePair&)>& look);

 private:
  struct Lane {
    std::size_t from;  ///< 0 or 1: the host that sends. The peer is host 1
    std::unique_ptr<ShareLane> lane;
  };
  struct Queues {
    std::shared_ptr<NotifiedQueue> requests, receives;
  };

  void make_lanes(const TrafficOptions& options);
  void take(NotifiedQueue& queue, bool of_receives);
  void arm(NotifiedQueue& queue, bool of_receives);
  [[nodiscard]] bool finished() const;
  void finish();

  const std::uint32_t number_;
  TrafficReport& report_;
  model::Random random_;
  MomentClock clock_;
  std::array<std::unique_ptr<MixSide>, 2> sides_;
  std::array<Queues, 2> queues_;
  std::unique_ptr<AtomicWords> words_;
  std::unique_ptr<SharedCells> cells_;
  std::vector<Lane> lanes_;
  CellLane* looks_ = nullptr;
  std::unique_ptr<QuietQueue> quiet_;
  std::size_t working_ = kThreads;
};

}  // namespace rnic::testbench
