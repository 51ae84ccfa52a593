#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "driver/costs.hpp"
#include "driver/mmio.hpp"
#include "driver/sleep_lock.hpp"
#include "driver/spin_lock.hpp"
#include "driver/umd/kernel_cq.hpp"
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
  /// At least 8 entries more than `entries` (decisions 37). Its completion events go to `channel`; 0: the client's
  /// first. `affinity`: processors for its events; 0: any. Errors: those of ProcessContext::create_cq.
  static Result<std::shared_ptr<CompletionQueue>> create(std::shared_ptr<ProcessContext> process, std::uint32_t entries,
                                                         calls::Handle channel = 0, std::uint64_t affinity = 0);
  /// What became of it: one processor, or 0.
  [[nodiscard]] std::uint64_t affinity() const { return kernel_cq_->affinity(); }
  /// The largest `entries` that create grants.
  [[nodiscard]] static std::uint32_t max_entries(const Limits& limits);

  CompletionQueue(std::shared_ptr<ProcessContext> process, std::unique_ptr<KernelCq> kernel_cq);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  [[nodiscard]] std::uint32_t cqn() const { return kernel_cq_->cqn(); }
  [[nodiscard]] KernelCq& kernel_cq() { return *kernel_cq_; }
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

  /// Takes up to `most` entries, oldest first, and gives each to `sink` (a function of const Completion&, which must
  /// not call the queue and should be short); returns how many. Never blocks; charges its cost. Needs no memory.
  template <typename Sink>
  std::size_t poll(std::size_t most, Sink&& sink);
  /// The same, into completions.
  [[nodiscard]] std::size_t poll(std::span<Completion> completions) {
    auto to = completions.begin();
    return poll(completions.size(), [&](const Completion& completion) { *to++ = completion; });
  }

  /// Decodes what has arrived. Lets no time pass. Needs no memory.
  void decode();
  /// How many entries that a solicited event is for (is_solicited) have arrived and were not polled yet, and `polled`
  /// besides: what a sink of poll has counted, read while no poll counts.
  [[nodiscard]] std::uint64_t solicited(const std::uint64_t& polled = 0);
  /// How many entries have arrived and were not polled yet.
  [[nodiscard]] std::uint32_t waiting();

  /// Asks for one event; also tells the consumer index. Lets no time pass but the cost of the call.
  void arm(hw::CqArm kind);
  /// The same from where no time may pass: what was armed before has been used up by something else.
  void renew_arm(hw::CqArm kind);

  /// CQEs of `qpn` belong to these queues (either may be null) from now on. Throws std::bad_alloc.
  void attach(std::uint32_t qpn, SendQueue* send, ReceiveSource* receive, void* qp_context);
  /// Decodes what has arrived and forgets the queues. Entries already decoded can still be polled.
  void detach(std::uint32_t qpn, const SendQueue* send, const ReceiveSource* receive);
  /// Decodes what has arrived; entries of `qpn` are removed, and their places are free (ibv_modify_qp to RESET,
  /// ibv_destroy_qp). Needs no memory.
  void forget(std::uint32_t qpn);

 private:
  struct Client {
    SendQueue* send{};
    ReceiveSource* receive{};
    void* qp_context{};
  };
  using Clients = std::unordered_map<std::uint32_t, Client>;
  struct Decoded {
    Completion completion;
    bool known;  ///< False: the CQE is of no request that is known
  };
  static constexpr std::uint32_t kIndexMask = 0xFFFFFF;

  /// Entries decoded and not polled, oldest first, in room for as many as the ring has; only what was used is ever
  /// touched.
  class Backlog {
   public:
    /// Throws std::bad_alloc.
    explicit Backlog(std::uint32_t room) : room_(room) { entries_.reserve(room); }
    [[nodiscard]] std::uint32_t room() const { return room_; }
    [[nodiscard]] std::uint32_t size() const { return last_ - first_; }
    [[nodiscard]] const Decoded& operator[](std::uint32_t i) const { return entries_[(first_ + i) & (room_ - 1)]; }
    [[nodiscard]] Decoded& operator[](std::uint32_t i) { return entries_[(first_ + i) & (room_ - 1)]; }
    /// Precondition: size() < room().
    void push(const Decoded& entry) {
      const std::uint32_t place = last_++ & (room_ - 1);
      if (place == entries_.size())
        entries_.push_back(entry);
      else
        entries_[place] = entry;
    }
    void pop() { ++first_; }
    /// Takes out those for which `is_one` holds; the others stay in their order. Returns how many went.
    template <typename IsOne>
    std::uint32_t remove(IsOne&& is_one) {
      std::uint32_t kept = 0;
      for (std::uint32_t i = 0; i < size(); ++i) {
        if (is_one((*this)[i])) continue;
        if (kept != i) (*this)[kept] = (*this)[i];
        ++kept;
      }
      const std::uint32_t removed = size() - kept;
      last_ -= removed;
      return removed;
    }

   private:
    std::vector<Decoded> entries_;
    std::uint32_t room_;  ///< A power of two, so that the indexes may wrap
    std::uint32_t first_{};
    std::uint32_t last_{};
  };

  enum class Decoding : std::uint8_t { kNothingThere, kUnknown, kDone };

  void decode_locked();
  Decoding decode_next(Completion& completion);
  [[nodiscard]] bool resolve(const hw::Cqe& cqe, Completion& completion);
  [[nodiscard]] const Client* client_of(std::uint32_t qpn);
  [[gnu::cold]] void report_unknown(std::uint32_t qpn);
  void ring(hw::CqArm kind);
  [[nodiscard]] Result<void> replace_ring(std::uint32_t entries);
  bool adopt(std::uint32_t origin, Backlog& larger);

  const std::shared_ptr<ProcessContext> process_;
  const std::unique_ptr<KernelCq> kernel_cq_;
  mutable SpinLock lock_;
  SleepLock resize_lock_;
  Clients clients_;
  const Clients::value_type* last_client_{};  ///< Of the newest CQE
  Backlog backlog_;
  std::uint32_t consumer_{};  ///< Polled
  std::uint32_t decoded_{};   ///< Decoded; consumer_ + backlog_.size()
};

// Here, so that whoever polls pays only for the fields that it takes.

template <typename Sink>
std::size_t CompletionQueue::poll(std::size_t most, Sink&& sink) {
  Machine& machine = process_->machine();
  machine.elapse(cost::kPollNs);
  std::size_t taken = 0;
  std::uint32_t consumed = 0;
  {
    const std::lock_guard lock(lock_);
    for (; backlog_.size() != 0 && taken < most; backlog_.pop(), ++consumed) {
      if (backlog_[0].known) sink(backlog_[0].completion), ++taken;
    }
    for (Completion completion; taken < most; ++consumed) {
      const Decoding decoding = decode_next(completion);
      if (decoding == Decoding::kNothingThere) break;
      if (decoding == Decoding::kDone) {
        sink(completion), ++taken;
      } else {
        report_unknown(completion.qpn);
      }
    }
    if (consumed != 0) {
      consumer_ += consumed;
      ring(hw::CqArm::kNone);
    }
  }
  if (consumed == 0) {
    machine.relax();
    return 0;
  }
  machine.elapse(consumed * cost::kPollEntryNs);
  return taken;
}

inline CompletionQueue::Decoding CompletionQueue::decode_next(Completion& completion) {
  constexpr auto kBytes = hw::Cqe::kBytes;
  const auto& ring = kernel_cq_->ring();
  const std::uint32_t place = (decoded_ - ring.origin) & kIndexMask;
  const auto slot = static_cast<std::size_t>(place & ((1U << ring.log_depth) - 1));
  const std::span<const std::uint8_t, kBytes> entry(ring.entries + slot * kBytes, kBytes);
  // The first pass writes phase 1.
  if (load_phase(entry) == (place >> ring.log_depth & 1)) return Decoding::kNothingThere;
  dma_read_barrier();
  ++decoded_;
  return resolve(hw::Cqe::decode(entry), completion) ? Decoding::kDone : Decoding::kUnknown;
}

/// False if it is of no request that is known; the queue pair is told all the same.
inline bool CompletionQueue::resolve(const hw::Cqe& cqe, Completion& completion) {
  completion = {.id = 0,
                .qp_context = nullptr,
                .kind = RequestKind::kSend,
                .status = static_cast<hw::CqeStatus>(cqe.status),
                .byte_count = cqe.byte_count,
                .qpn = cqe.qpn,
                .syndrome = cqe.syndrome,
                .solicited = cqe.solicited != 0,
                .l3_ok = cqe.l3_ok != 0,
                .l4_ok = cqe.l4_ok != 0,
                .with_immediate = cqe.with_imm != 0,
                .with_invalidate = cqe.with_invalidate != 0,
                .immediate = cqe.immediate,
                .grh = cqe.grh != 0,
                .source_qpn = cqe.source_qpn,
                .vlan = cqe.vlan != 0,
                .vlan_tci = cqe.vlan_tci,
                .timestamp = cqe.timestamp};
  const Client* const client = client_of(cqe.qpn);
  if (client == nullptr) return false;
  completion.qp_context = client->qp_context;
  if (cqe.is_receive != 0) {
    if (client->receive == nullptr) return false;
    const auto id = client->receive->complete(cqe.wqe_index);
    if (!id) return false;
    completion.id = *id;
    const bool write = cqe.opcode == static_cast<std::uint8_t>(hw::CqeOpcode::kReceiveWrite);
    completion.kind = write ? RequestKind::kReceiveWrite : RequestKind::kReceive;
  } else {
    if (client->send == nullptr) return false;
    const auto posted =
        client->send->complete(cqe.wqe_index, cqe.retired_index, completion.status != hw::CqeStatus::kSuccess);
    if (!posted) return false;
    completion.id = posted->id;
    completion.kind = posted->kind;
  }
  return true;
}

inline const CompletionQueue::Client* CompletionQueue::client_of(std::uint32_t qpn) {
  if (last_client_ == nullptr || last_client_->first != qpn) {
    const auto found = clients_.find(qpn);
    if (found == clients_.end()) return nullptr;
    last_client_ = &*found;
  }
  return &last_client_->second;
}

inline void CompletionQueue::ring(hw::CqArm kind) {
  dma_release_barrier();
  process_->ring(
      hw::uar::kCqDoorbell,
      hw::CqDoorbell{.cqn = cqn(), .arm = static_cast<std::uint8_t>(kind), .consumer_index = consumer_}.word());
}

}  // namespace rnic::umd
