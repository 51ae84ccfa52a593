#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/umd/queue_pair.hpp"
#include "testbench/traffic/mix_side.hpp"
#include "testbench/traffic/notified_queue.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// A small completion queue that is armed for errors. It is filled to the brim, of which nobody is told, and emptied;
/// or it gets one entry more, of which its owner is told (InfiniBand specification 11.6.3.1; decisions 26), and is made
/// anew with its queue pairs.
class QuietQueue {
 public:
  /// Throws EndpointError.
  QuietQueue(std::string name, MixSide& from, MixSide& to, const ConnectParameters& connection,
             const TrafficOptions& options, std::uint64_t seed, TrafficReport& report);
  ~QuietQueue();
  QuietQueue(const QuietQueue&) = delete;
  QuietQueue& operator=(const QuietQueue&) = delete;

  /// From the thread of the host that sends. Lets time pass in driver calls.
  void step();
  [[nodiscard]] bool told() const { return queue_->told(); }
  [[nodiscard]] bool finished() const { return broken_ || (report_.stopping && state_ == State::kEmpty); }

 private:
  enum class State : std::uint8_t { kEmpty, kFilling, kOverrunning };

  void make();
  void unmake();
  void fill();
  void empty();
  void check_overrun();
  void wrong(const std::string& text);

  const std::string name_;
  MixSide &from_, &to_;
  const ConnectParameters connection_;
  const TrafficOptions& options_;
  model::Random random_;
  TrafficReport& report_;
  std::span<std::uint8_t> bytes_;
  std::shared_ptr<umd::CompletionQueue> sink_cq_;
  std::shared_ptr<NotifiedQueue> queue_;
  std::shared_ptr<umd::QueuePair> source_, sink_;
  State state_ = State::kEmpty;
  std::uint32_t posted_ = 0;  ///< Since the queue was empty
  std::uint64_t began_ns_ = 0, pause_until_ns_ = 0;
  bool broken_ = false;
};

}  // namespace rnic::testbench
