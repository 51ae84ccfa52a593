#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "driver/sleep_lock.hpp"
#include "driver/spin_lock.hpp"
#include "driver/umd/kernel_srq.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/receive_source.hpp"
#include "driver/umd/request.hpp"

namespace rnic::umd {

class CompletionQueue;

/// A shared receive queue of a process: receives that the next message of any of its queue pairs takes.
///
/// The device takes requests in the order in which they were posted, and queue pairs finish them in any order. So a
/// request is known by a tag, and its slot in the ring by its index: when a request has its CQE, it and all requests
/// before it have been read, so with at most `depth` requests without a CQE the next slot of the ring is free.
///
/// Thread safe. Lock order: completion queue, then shared receive queue. Control functions let time pass.
class SharedReceiveQueue final : public ReceiveSource {
 public:
  /// `segments`: at least 4 are granted (decisions 37). `pd`: the protection domain of its buffers; 0: the process's
  /// first. Errors: kInvalidParameter (beyond the limits), those of ProcessContext::create_srq.
  static Result<std::shared_ptr<SharedReceiveQueue>> create(std::shared_ptr<ProcessContext> process,
                                                            std::uint32_t depth, std::uint32_t segments,
                                                            calls::Handle pd = 0, std::uint64_t affinity = 0);
  /// As CompletionQueue.
  [[nodiscard]] std::uint64_t affinity() const { return kernel_srq_->affinity(); }
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  [[nodiscard]] std::uint32_t srqn() const { return kernel_srq_->srqn(); }
  [[nodiscard]] KernelSrq& kernel_srq() { return *kernel_srq_; }
  [[nodiscard]] const std::shared_ptr<ProcessContext>& process() const { return process_; }
  [[nodiscard]] std::uint32_t depth();
  /// Segments granted.
  [[nodiscard]] std::uint32_t max_segments() const { return max_segments_; }
  /// Requests without a decoded CQE.
  [[nodiscard]] std::uint32_t outstanding();

  /// Errors: kTooManySegments, kMessageTooLong, kQueueFull. An error rings for what was deferred. A full queue first
  /// decodes what has arrived in the completion queues of its queue pairs. Needs no memory. Errors: also kDeviceFailed.
  [[nodiscard]] Result<void> post(const ReceiveRequest& request);
  void ring_deferred();

  /// Changes the depth while messages arrive. Errors: kInvalidParameter (0, or beyond the limit), kMessageTooLong (more
  /// is outstanding; nothing changes), kOutOfMemory, those of KernelSrq::use.
  [[nodiscard]] Result<void> resize(std::uint32_t depth);

  /// As KernelSrq::arm.
  [[nodiscard]] Result<void> arm(std::uint16_t limit) { return kernel_srq_->arm(limit); }

  [[nodiscard]] std::optional<std::uint64_t> complete(std::uint16_t index) override;

  /// Completions of a queue pair on this queue go to `cq` from now on; once for each queue pair. Throws std::bad_alloc.
  void attach(const std::shared_ptr<CompletionQueue>& cq);
  void detach(const std::shared_ptr<CompletionQueue>& cq);

 private:
  SharedReceiveQueue(std::shared_ptr<ProcessContext> process, std::unique_ptr<KernelSrq> kernel_srq,
                     std::uint32_t depth, std::uint32_t segments);

  Result<void> try_post(const ReceiveRequest& request);
  Result<void> check(const ReceiveRequest& request) const;
  void build(const ReceiveRequest& request, std::uint16_t tag, std::uint8_t* ring, unsigned log_depth) const;
  void ring();
  void reserve_tags(std::uint32_t depth);
  void grow_tags();
  Result<void> change_depth(std::uint32_t depth);
  Result<void> change_ring(std::uint32_t depth, unsigned log_depth);
  void copy_to(std::uint8_t* ring, unsigned log_depth) const;
  void decode();

  struct Posted {
    std::uint64_t id{};
    bool live{};
  };

  const std::shared_ptr<ProcessContext> process_;
  const std::unique_ptr<KernelSrq> kernel_srq_;
  const std::uint32_t max_segments_;
  SleepLock resize_lock_;
  SpinLock lock_;
  std::uint32_t depth_;
  std::vector<Posted> posted_;            ///< By tag
  std::vector<std::uint16_t> free_tags_;  ///< Has room for all tags
  std::uint32_t outstanding_{};
  std::uint16_t producer_{};
  std::uint16_t rung_{};
  std::uint8_t* next_ring_{};  ///< While the device is asked to take it; null: it is not
  unsigned next_log_depth_{};
  std::vector<std::shared_ptr<CompletionQueue>> completion_queues_;
};

}  // namespace rnic::umd
