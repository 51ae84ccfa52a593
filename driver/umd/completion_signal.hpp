#pragma once

#include <atomic>
#include <memory>

#include "driver/event_sink.hpp"
#include "driver/umd/completion_queue.hpp"

namespace rnic::umd {

/// Whether a completion queue has told of an entry, for a thread of the kernel driver that sleeps until it does.
class CompletionSignal {
 public:
  /// `queue` belongs to the process.
  CompletionSignal(ProcessContext& process, std::shared_ptr<CompletionQueue> queue)
      : queue_(std::move(queue)), event_(std::make_shared<Event>()) {
    process.events().subscribe(EventTable::Of::kCq, queue_->cqn(), event_);
  }

  /// Asks for the event of the next entry, if the last one has come, and not before: others are woken by the same
  /// device, and must not make this thread speak to it; and an entry that was taken before its event came would use up
  /// two arms. Lets time pass.
  void ask() {
    if (event_->came.exchange(false)) queue_->arm(hw::CqArm::kAny);
  }
  [[nodiscard]] bool came() const { return event_->came; }

 private:
  struct Event final : EventSink {
    void on_event(const hw::Eqe&) override { came = true; }
    std::atomic<bool> came = true;  ///< Or nobody has asked for one yet
  };

  std::shared_ptr<CompletionQueue> queue_;
  std::shared_ptr<Event> event_;
};

}  // namespace rnic::umd
