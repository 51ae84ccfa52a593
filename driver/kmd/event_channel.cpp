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
  const std::lock_guard lock(mutex_);
  if (!std::exchange(event.waits, false)) return;
  PendingEvent* before = nullptr;
  for (PendingEvent* at = oldest_; at != &event; at = at->next) before = at;
  (before == nullptr ? oldest_ : before->next) = event.next;
  if (newest_ == &event) newest_ = before;
}

std::size_t EventChannel::take(std::span<calls::Event> events) {
  const std::lock_guard lock(mutex_);
  std::size_t taken = 0;
  for (; oldest_ != nullptr && taken < events.size(); ++taken) {
    events[taken] = oldest_->event;
    oldest_->waits = false;
    oldest_ = oldest_->next;
  }
  if (oldest_ == nullptr) newest_ = nullptr;
  return taken;
}

bool EventChannel::empty() {
  const std::lock_guard lock(mutex_);
  return oldest_ == nullptr;
}

void EventChannel::listen(std::function<void()> first) {
  {
    const std::lock_guard lock(listener_mutex_);
    first_ = std::move(first);
  }
  if (!empty()) tell();
}

void EventChannel::tell() {
  const std::lock_guard lock(listener_mutex_);
  if (first_) first_();
}

}  // namespace rnic::kmd
