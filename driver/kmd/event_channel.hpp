#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <span>

#include "driver/generated/kernel_calls.hpp"

namespace rnic::kmd {

class EventChannel;

/// A place for one kind of event of one object: at most one waits, and a second one while it does is the same, with the
/// detail and the time of the first. Its owner takes it out of its channel before it goes.
struct PendingEvent {
  calls::Event event{};
  PendingEvent* next{};
  bool waits{};
};

/// Events that wait to be read by a client, oldest first. Needs no memory, so none is lost. Thread safe; lets no time
/// pass.
class EventChannel {
 public:
  EventChannel() = default;
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  void put(PendingEvent& event, std::uint32_t detail = 0, std::uint64_t timestamp = 0);
  void remove(PendingEvent& event);
  /// Returns how many were taken.
  std::size_t take(std::span<calls::Event> events);
  [[nodiscard]] bool empty();

  /// `changed` is called with whether events wait: now, after one has come into the empty channel, and after the last
  /// one has been taken. Calls are one after the other, and the last one is true to what is. Empty: nobody.
  void listen(std::function<void(bool)> changed);

 private:
  void tell();

  std::mutex mutex_;
  PendingEvent* oldest_{};
  PendingEvent* newest_{};
  std::mutex listener_mutex_;
  std::function<void(bool)> changed_;
};

}  // namespace rnic::kmd
