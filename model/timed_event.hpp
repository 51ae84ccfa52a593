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
/// happened (a delta cycle later), the threads that slept until then (wait_until), in the order of their ranks, and of
/// one rank in the order in which they went to sleep. Everything in a world that waits for a time waits in one of these
/// two ways.
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

/// Rank of the calling SC_THREAD while the object lives; without one it is 0. With ranks it makes no difference whether
/// a thread wakes up now and then to look for something, or sleeps until it is there.
class ThreadRank {
 public:
  explicit ThreadRank(std::uint64_t rank);
  ~ThreadRank();
  ThreadRank(const ThreadRank&) = delete;
  ThreadRank& operator=(const ThreadRank&) = delete;

  [[nodiscard]] static std::uint64_t of_caller();

 private:
  sc_core::sc_attribute<std::uint64_t> rank_;
  sc_core::sc_process_handle thread_;
};

/// The calling SC_THREAD sleeps until `time`, or until `event` if that happens before. Returns at once when `time` is
/// not in the future.
void wait_until(Picoseconds time);
void wait_until(Picoseconds time, const sc_core::sc_event& event);
/// As wait_until, but a time that is now is one to wait for: the thread goes on when all that happens at it has
/// happened.
void wait_turn_at(Picoseconds time, const sc_core::sc_event& event);

/// The time `duration` from now; the end of time if there is no such time.
[[nodiscard]] inline Picoseconds time_in(Picoseconds duration) {
  const Picoseconds now = now_ps(), end = now + duration;
  return end < now ? ~Picoseconds{0} : end;
}

}  // namespace rnic::model
