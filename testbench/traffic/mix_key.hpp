#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "driver/umd/memory_request.hpp"
#include "model/random.hpp"
#include "testbench/traffic/mix_side.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// A key that a queue pair of `owner` opens to its peer again and again, each time for another range: a fast
/// registration, or a memory window of type 2B. What ends it is a SEND with invalidate of the peer, or an invalidation
/// of the owner.
class MixKey {
 public:
  enum class State : std::uint8_t { kIdle, kOpening, kOpen, kInUse, kClosing };

  /// `fast`: a fast registration; the queue pair must have been made for it. Throws EndpointError.
  MixKey(MixSide& owner, umd::QueuePair& qp, bool fast);
  ~MixKey();
  MixKey(const MixKey&) = delete;
  MixKey& operator=(const MixKey&) = delete;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::uint32_t key() const { return fast_ ? fast_->key() : window_->key(); }
  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::span<const std::uint8_t> memory() const {
    return range_;
  }  ///< What the key opens, as long as it is open

  /// Posts what opens the key for a random range. False: the queue is full.
  bool open(model::Random& random, std::uint64_t id);
  /// The peer's requests for it are posted from now on, `users` of them.
  void use(std::uint32_t users);
  /// One of them has completed at the peer.
  void used(TrafficReport& report);
  /// The peer's message behind them has come; `invalidated`: the key with it. False: the key must still be closed, and
  /// the queue is full.
  bool message_came(bool invalidated, std::uint64_t id, TrafficReport& report);
  /// The owner's request has completed with success. False: there was none of that kind.
  bool on_request(umd::RequestKind kind, TrafficReport& report);

 private:
  void end(TrafficReport& report);

  static constexpr std::size_t kPage = 4096, kPages = 3;

  MixSide& owner_;
  umd::QueuePair& qp_;
  std::span<std::uint8_t> memory_;  ///< Whole pages
  std::vector<std::uint64_t> pages_;
  std::unique_ptr<umd::KernelFastMr> fast_;
  std::unique_ptr<umd::KernelMw> window_;
  std::span<std::uint8_t> range_;
  std::uint64_t address_ = 0;
  State state_ = State::kIdle;
  std::uint32_t users_ = 0;
  bool ended_ = false;  ///< Opens nothing any more; the peer may still wait for completions
};

}  // namespace rnic::testbench
