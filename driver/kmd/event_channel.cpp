#include "driver/kmd/event_channel.hpp"

#include <utility>

namespace rnic::kmd {

void EventChannel::put(PendingEvent& event, std::uint32_t detail, std::uint64_t timestamp) {
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(event.waits, true)) return;
    event.event.detail = detail;
    event.event.timestamp = timestamp;
    event.next = nullptr;
    was_empty = oldest_ == nullptr;
    (was_empty ? oldest_ : newest_->next) = &event;
    newest_ = &event;
  }
  if (was_empty) tell();
}

void EventChannel::remove(PendingEvent& event) {
  bool is_empty = false;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(event.waits, false)) return;
    PendingEvent* before = nullptr;
    for (PendingEvent* at = oldest_; at != &event; at = at->next) before = at;
    (before == nullptr ? oldest_ : before->next) = event.next;
    if (newest_ == &event) newest_ = before;
    is_empty = oldest_ == nullptr;
  }
  if (is_empty) tell();
}

std::size_t EventChannel::take(std::span<calls::Event> events) {
  std::size_t taken = 0;
  bool is_empty = false;
  {
    const std::lock_guard lock(mutex_);
    for (; oldest_ != nullptr && taken < events.size(); ++taken) {
      events[taken] = oldest_->event;
      oldest_->waits = false;
      oldest_ = oldest_->next;
    }
    is_empty = oldest_ == nullptr;
    if (is_empty) newest_ = nullptr;
  }
  if (taken != 0 && is_empty) tell();
  return taken;
}

bool EventChannel::empty() {
  const std::lock_guard lock(mutex_);
  return oldest_ == nullptr;
}

void EventChannel::listen(std::function<void(bool)> changed) {
  {
    const std::lock_guard lock(listener_mutex_);
    changed_ = std::move(changed);
  }
  tell();
}

void EventChannel::tell() {
  const std::lock_guard lock(listener_mutex_);
  if (changed_) changed_(!empty());
}

}  // namespace rnic::kmd
