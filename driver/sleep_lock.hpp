#pragma once

#include <atomic>
#include <cstdint>

#include "driver/machine.hpp"

namespace rnic {

/// A lock that may be held while time passes (a mutex may not, see Device). Whoever finds it taken waits by the
/// machine's own means until it is free; nobody is woken for a lock that nobody waits for.
class SleepLock {
 public:
  explicit SleepLock(Machine& machine) : machine_(machine) {}
  SleepLock(const SleepLock&) = delete;
  SleepLock& operator=(const SleepLock&) = delete;

  /// Holds the lock for a scope. False: the calling thread can wait no more (Machine::wait), and does not have the
  /// lock.
  class [[nodiscard]] Guard {
   public:
    explicit Guard(SleepLock& lock) : lock_(lock), held_(lock.acquire()) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
      if (held_) lock_.release();
    }
    explicit operator bool() const { return held_; }

   private:
    SleepLock& lock_;
    const bool held_;
  };

 private:
  bool acquire() {
    for (;;) {
      const std::uint64_t seen = machine_.wake_count();
      if (State free = State::kFree; state_.compare_exchange_strong(free, State::kHeld)) return true;
      // From now on whoever lets go wakes; who lets go meanwhile leaves it free.
      if (state_.exchange(State::kWaitedFor) == State::kFree) return true;
      if (!machine_.wait(seen, kForever)) return false;
    }
  }
  void release() {
    if (state_.exchange(State::kFree) == State::kWaitedFor) machine_.wake();
  }

  enum class State : std::uint8_t { kFree, kHeld, kWaitedFor };

  Machine& machine_;
  std::atomic<State> state_{State::kFree};
};

}  // namespace rnic
