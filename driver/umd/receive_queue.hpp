#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "driver/result.hpp"
#include "driver/spin_lock.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/receive_source.hpp"
#include "driver/umd/request.hpp"

namespace rnic::umd {

/// The receive ring of a queue pair. Every receive request makes a CQE, in order, so a slot is free when that CQE
/// has been decoded. Threads and locks as for SendQueue.
class ReceiveQueue final : public ReceiveSource {
 public:
  struct Layout {
    std::uint32_t qpn{};
    std::uint8_t* ring{};
    unsigned log_depth{};
    unsigned log_stride{};
    std::uint32_t depth{};
    std::uint32_t max_segments{};
    std::uint32_t max_message{};
  };

  [[nodiscard]] static unsigned log_stride_for(std::uint32_t segments);

  ReceiveQueue(ProcessContext& process, const Layout& layout);
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  /// Errors: kTooManySegments, kMessageTooLong, kQueueFull. As SendQueue::post otherwise.
  [[nodiscard]] Result<void> post(const ReceiveRequest& request);
  void ring_deferred();

  [[nodiscard]] std::optional<std::uint64_t> complete(std::uint16_t index) override;

  /// Tells the device of everything that has been posted, and keeps what is posted in this scope to itself until the
  /// end of the scope. One at a time; null: there is no queue.
  class [[nodiscard]] Pause {
   public:
    explicit Pause(ReceiveQueue* queue);
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();

   private:
    ReceiveQueue* const queue_;
  };
  /// Forgets everything: the device's indexes are 0 again.
  void reset();
  /// The same in a Pause, but for what has been posted since that began: this is what the device will be told of.
  void restart();

  [[nodiscard]] std::uint32_t outstanding();

 private:
  Result<void> check(const ReceiveRequest& request) const;
  void build(const ReceiveRequest& request);
  void ring();

  ProcessContext& process_;
  const Layout layout_;
  const std::uint16_t mask_;
  SpinLock lock_;
  std::vector<std::uint64_t> ids_;
  std::uint16_t producer_{};
  std::uint16_t rung_{};
  std::uint16_t oldest_{};
  bool paused_{};
  std::uint16_t paused_at_{};  ///< The first index that was posted since
};

}  // namespace rnic::umd
