#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/umd/queue_pair.hpp"
#include "model/random.hpp"
#include "testbench/traffic/mix_receives.hpp"
#include "testbench/traffic/mix_side.hpp"
#include "testbench/traffic/notified_queue.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// Moments of a whole world, each later than the one before: what certainly was before what.
class MomentClock {
 public:
  /// `ns`: simulated time.
  [[nodiscard]] std::uint64_t next(std::uint64_t ns) { return last_ = std::max(last_ + 1, ns << kFraction); }

 private:
  static constexpr unsigned kFraction = 12;
  std::uint64_t last_ = 0;
};

/// An RC queue pair that sends, and the one at its peer, in a TrafficShare. What it sends is said by those that derive
/// from it.
class ShareLane {
 public:
  /// What a host gives to the lanes.
  struct Host {
    MixSide& side;
    NotifiedQueue& requests;  ///< Completions of what the host's queue pairs send
    NotifiedQueue& receives;  ///< And of their Receives
  };
  struct Spec {
    std::string name;      ///< In messages
    std::uint32_t number;  ///< From 1 on; another one for each lane
    Host from, to;         ///< May be the same host
    ConnectParameters connection;
  };
  static constexpr std::size_t kWindow = 8;

  /// Makes and connects the queue pairs. `receives`: those that the peer has posted, each of so many bytes. Throws
  /// EndpointError.
  ShareLane(const Spec& spec, std::size_t receives, std::size_t receive_bytes, MomentClock& clock,
            const TrafficOptions& options, std::uint64_t seed, TrafficReport& report);
  virtual ~ShareLane();
  ShareLane(const ShareLane&) = delete;
  ShareLane& operator=(const ShareLane&) = delete;

  /// From the thread of the host that sends: posts what is due. Lets time pass in driver calls.
  void step();
  /// From the thread of the peer: posts Receives.
  void step_sink();
  void on_completion(const umd::Completion& completion, bool of_receives);
  [[nodiscard]] const std::string& name() const { return spec_.name; }
  [[nodiscard]] umd::QueuePair& source() { return *source_; }
  [[nodiscard]] umd::QueuePair& sink() { return *sink_; }
  /// Everything is done, or nothing more will be.
  [[nodiscard]] bool finished() const;

 protected:
  struct Request {
    umd::SendRequest send{};                                                            ///< Without id and segments
    std::span<std::uint8_t> memory{};                                                   ///< Of the local host
    bool tells = false;                                                                 ///< Uses a Receive of the peer
    std::function<void(umd::SendRequest& send, std::uint64_t moment)> about_to_post{};  ///< May still change it
    std::function<void(std::uint64_t moment)> done{};
  };

  /// Puts the next requests into `plan`. `last`: only what must follow for others to end.
  virtual void next(bool last) = 0;
  /// Message `message`, counted from 0, has come.
  virtual void arrived(std::uint64_t /*message*/, const umd::Completion& /*completion*/,
                       std::span<const std::uint8_t> /*buffer*/) {}
  /// Messages that have been planned and have not come.
  [[nodiscard]] std::uint64_t under_way() const { return messages_ - arrived_; }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  void plan(Request request);

  /// Memory of the local host for a request; may be used again kWindow requests later.
  [[nodiscard]] std::span<std::uint8_t> slot(std::size_t bytes);
  [[nodiscard]] const Spec& spec() const { return spec_; }
  [[nodiscard]] MomentClock& clock() { return clock_; }
  [[nodiscard]] model::Random& random() { return random_; }
  [[nodiscard]] TrafficReport& report() { return report_; }
  [[nodiscard]] std::uint64_t now() const { return spec_.from.side.now(); }
  [[nodiscard]] std::uint64_t number() const { return planned_; }  ///< Of the next request
  void wrong(const std::string& text);

  static constexpr std::size_t kSlotBytes = 4'096;
  static constexpr std::uint32_t kShareInline = 128;
  /// Messages in a row that are not solicited: so many may be under way without anybody being told.
  static constexpr std::uint32_t kQuietMessages = 1;

 private:
  struct Outstanding {
    Request request;
    std::uint64_t number{};
  };

  bool post();
  void retire(Outstanding& one);
  void watch();

  const Spec spec_;
  MomentClock& clock_;
  const TrafficOptions& options_;
  model::Random random_;
  TrafficReport& report_;
  std::shared_ptr<umd::QueuePair> source_, sink_;
  std::unique_ptr<MixReceives> receives_;
  std::vector<std::span<std::uint8_t>> slots_;
  std::deque<Outstanding> waiting_, outstanding_;
  std::uint64_t planned_ = 0, messages_ = 0, arrived_ = 0, used_slots_ = 0;
  std::uint64_t next_post_ns_ = 0, last_progress_ns_ = 0;
  std::uint32_t silent_run_ = 0, quiet_run_ = 0;
  bool broken_ = false;
};

}  // namespace rnic::testbench
