#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/completion_splitter.hpp"
#include "model/flow_control.hpp"
#include "model/pcie.hpp"
#include "model/random.hpp"
#include "model/root_complex_options.hpp"
#include "model/time.hpp"
#include "model/tlp_line.hpp"

namespace rnic::model {

/// The link from the root complex to the NIC: orders host requests and completions of DMA reads, and carries them.
///
/// Host requests keep their order and pass completions; a completion never passes an earlier host request (base
/// specification 2.4.1, rows C and D). Completions of one read keep their order; those of different reads do so only
/// without reordering.
///
/// Kinds that are held wait, and what may not pass them waits behind them: nothing passes a posted request that was
/// pushed before it; posted requests and completions pass non-posted requests that wait, posted requests pass
/// completions (table 2-40).
///
/// The link is worked out when somebody looks. What starts at time t depends only on what was pushed up to t, so how
/// often the NIC looks changes nothing.
class Downstream {
 public:
  explicit Downstream(const RootComplexOptions& options);

  /// A new maximum payload holds for completions that have not started.
  void set_max_payload(std::size_t bytes) { splitter_.set_max_payload(bytes); }

  /// TLPs of these kinds have no credits from now on, those of the others enough.
  void hold(const CreditKinds& kinds, Picoseconds now);
  [[nodiscard]] const CreditKinds& held() const { return held_; }

  /// `now` never goes back.
  void push_request(HostRequest request, Picoseconds now);
  void push_read(ReadJob job, Picoseconds now);
  /// The next packet that has arrived at the NIC by `now`. False: there is none.
  bool take_request(HostRequest& request, Picoseconds now);
  bool take_completion(DmaCompletion& completion, Picoseconds now);
  /// No packet arrives before this time, of those pushed so far. Nothing: there is none, or credits hold them all.
  [[nodiscard]] std::optional<Picoseconds> next_arrival() const;

 private:
  template <typename Packet>
  struct Timed {
    Picoseconds time;
    Packet packet;
  };

  void advance(Picoseconds now);
  [[nodiscard]] Picoseconds arrival(Picoseconds start, std::size_t payload_bytes);
  void plan();
  [[nodiscard]] std::size_t next_request() const;
  [[nodiscard]] bool may_go(const Timed<ReadJob>& job) const;
  [[nodiscard]] std::size_t choose_job(Picoseconds start);

  RootComplexOptions options_;
  Picoseconds half_latency_;
  Random random_;
  Random jitter_;
  CompletionSplitter splitter_;
  TlpLine line_;
  CreditKinds held_;
  Picoseconds held_since_ = 0;               ///< When that changed
  std::deque<Timed<HostRequest>> requests_;  ///< Waiting, with the time they were pushed
  std::vector<Timed<ReadJob>> jobs_;  ///< Waiting, in order of their reads, with the time the memory has answered
  Picoseconds next_start_;            ///< When the next packet starts, as far as is known
  std::deque<Timed<HostRequest>> arriving_requests_;
  std::deque<Timed<DmaCompletion>> arriving_completions_;
  Picoseconds last_request_ = 0;     ///< When the newest request arrives
  Picoseconds last_completion_ = 0;  ///< The newest completion
};

}  // namespace rnic::model
