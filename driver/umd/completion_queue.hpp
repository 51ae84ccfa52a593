#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "driver/kmd/kernel_cq.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/receive_source.hpp"
#include "driver/umd/request.hpp"
#include "driver/umd/send_queue.hpp"

namespace rnic::umd {

/// A completion queue: takes CQEs from the ring and pairs them with what was posted.
///
/// Taking has two steps. Decoding reads new CQEs in ring order, looks up their requests, and so frees slots of the send
/// and receive queues; polling hands decoded entries to the caller and moves the consumer index. A full send or
/// receive queue decodes without polling, because a slot is free when its request has retired, reaped or not
/// (decisions 2), while an entry of the CQ is free only when it was reaped (decisions 26).
///
/// Thread safe. Lock order: completion queue, then send or receive queue.
class CompletionQueue {
 public:
  /// At least 8 entries more than `entries` (decisions 37). Errors: those of KernelDevice::create_cq.
  static Result<std::shared_ptr<CompletionQueue>> create(std::shared_ptr<ProcessContext> process,
                                                         std::uint32_t entries);
  /// The largest `entries` that create grants.
  [[nodiscard]] static std::uint32_t max_entries(const kmd::Limits& limits);

  CompletionQueue(std::shared_ptr<ProcessContext> process, std::unique_ptr<kmd::KernelCq> kernel_cq);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  [[nodiscard]] std::uint32_t cqn() const { return kernel_cq_->cqn(); }
  [[nodiscard]] kmd::KernelCq& kernel_cq() { return *kernel_cq_; }
  /// Entries granted; one more overruns the queue.
  [[nodiscard]] std::uint32_t depth() const;

  /// Grants what create would, while traffic goes on: no entry is lost, and a pending arm stays (decisions 28). Errors:
  /// kTooSmall (more entries wait to be polled; nothing has changed), kInvalidState (overrun), kTimeout (an entry does
  /// not come), those of KernelCq::resize.
  [[nodiscard]] Result<void> resize(std::uint32_t entries);
  /// See KernelCq::moderate.
  [[nodiscard]] Result<void> moderate(std::uint16_t count, std::uint16_t period_us) {
    return kernel_cq_->moderate(count, period_us);
  }

  /// Takes up to completions.size() entries, oldest first; returns how many. Never blocks; charges its cost. Needs no
  /// memory.
  [[nodiscard]] std::size_t poll(std::span<Completion> completions);

  /// Decodes what has arrived. Lets no time pass. Needs no memory.
  void decode();
  /// Whether an entry that a solicited event is for (a solicited message, or an error) has arrived and was not polled
  /// yet.
  [[nodiscard]] bool solicited_waits();

  /// Asks for one event; also tells the consumer index. Lets no time pass but the cost of the call.
  void arm(hw::CqArm kind);

  /// CQEs of `qpn` belong to these queues (either may be null) from now on. Throws std::bad_alloc.
  void attach(std::uint32_t qpn, SendQueue* send, ReceiveSource* receive, void* qp_context);
  /// Decodes what has arrived and forgets the queues. Entries already decoded can still be polled.
  void detach(std::uint32_t qpn, const SendQueue* send, const ReceiveSource* receive);

 private:
  struct Client {
    SendQueue* send{};
    ReceiveSource* receive{};
    void* qp_context{};
  };
  /// Nothing, if the CQE is of no request that is known.
  struct Decoded {
    Completion completion;
    bool known{};
  };

  /// Entries decoded and not polled, oldest first, in room for as many as the ring has; only what was used is ever
  /// touched.
  class Backlog {
   public:
    /// Throws std::bad_alloc.
    explicit Backlog(std::uint32_t room) : room_(room) { entries_.reserve(room); }
    [[nodiscard]] std::uint32_t room() const { return room_; }
    [[nodiscard]] std::uint32_t size() const { return last_ - first_; }
    [[nodiscard]] const Decoded& operator[](std::uint32_t i) const { return entries_[(first_ + i) % room_]; }
    /// Precondition: size() < room().
    void push(const Decoded& entry) {
      const std::uint32_t place = last_++ % room_;
      if (place == entries_.size())
        entries_.push_back(entry);
      else
        entries_[place] = entry;
    }
    void pop() { ++first_; }

   private:
    std::vector<Decoded> entries_;
    std::uint32_t room_;  ///< A power of two, so that the indexes may wrap
    std::uint32_t first_{};
    std::uint32_t last_{};
  };

  bool next_cqe(hw::Cqe& cqe);
  void decode_locked();
  [[nodiscard]] Decoded resolve(const hw::Cqe& cqe);
  void ring(hw::CqArm kind);
  [[nodiscard]] Result<void> replace_ring(std::uint32_t entries);
  bool adopt(std::uint32_t origin, Backlog& larger);

  const std::shared_ptr<ProcessContext> process_;
  const std::unique_ptr<kmd::KernelCq> kernel_cq_;
  mutable std::mutex mutex_;
  SleepLock resize_lock_;
  std::unordered_map<std::uint32_t, Client> clients_;
  Backlog backlog_;
  std::uint32_t consumer_{};  ///< Polled
  std::uint32_t decoded_{};   ///< Decoded; consumer_ + backlog_.size()
};

}  // namespace rnic::umd
