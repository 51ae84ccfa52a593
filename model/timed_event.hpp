#pragma once

#include <cstdint>
#include <systemc>

#include "model/time.hpp"

namespace rnic::model {

/// A SystemC event that is notified at a simulated time, in a fixed order among all that are due at that time.
///
/// SystemC serves events of the same time in the order of a heap, which depends on everything else that is pending: a
/// clock that stands still for a while would change who comes first much later. Here what is due at a time happens in
/// two steps: the TimedEvents, in the order in which they were constructed; then, when all that followed from them has
/// happened (a delta cycle later), the threads that slept until then (wait_until), in the order in which they went to
/// sleep. Everything in a world that waits for a time waits in one of these two ways.
class TimedEvent {
 public:
  TimedEvent();
  ~TimedEvent();
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  /// What a process is sensitive to.
  [[nodiscard]] const sc_core::sc_event& event() const { return event_; }
  /// Happens at `time` (not in the past), or when it was to happen before, if that is earlier.
  void notify_at(Picoseconds time);
  /// Does not happen any more.
  void cancel();

 private:
  sc_core::sc_event event_;
  std::uint64_t order_;  ///< Of construction
  bool pending_ = false;
  Picoseconds due_{};

  friend class TimeOrder;
};

/// The calling SC_THREAD sleeps until `time`, or until `event` if that happens before. Returns at once when `time` is
/// not in the future.
void wait_until(Picoseconds time);
void wait_until(Picoseconds time, const sc_core::sc_event& event);

/// The time `duration` from now; the end of time if there is no such time.
[[nodiscard]] inline Picoseconds time_in(Picoseconds duration) {
  const Picoseconds now = now_ps(), end = now + duration;
  return end < now ? ~Picoseconds{0} : end;
}

}  // namespace rnic::model
