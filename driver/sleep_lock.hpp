#pragma once

#include <atomic>

#include "driver/device.hpp"

namespace rnic {

/// A lock that may be held while time passes (a mutex may not, see Device). Whoever finds it taken waits by the
/// machine's own means until it is free.
class SleepLock {
 public:
  explicit SleepLock(Device& device) : device_(device) {}
  SleepLock(const SleepLock&) = delete;
  SleepLock& operator=(const SleepLock&) = delete;

  /// Holds the lock for a scope. False: the calling thread can wait no more (Device::wait), and does not have the lock.
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
      const std::uint64_t seen = device_.wake_count();
      if (!held_.exchange(true)) return true;
      if (!device_.wait(seen, kForever)) return false;
    }
  }
  void release() {
    held_.store(false);
    device_.wake();
  }

  Device& device_;
  std::atomic<bool> held_{};
};

}  // namespace rnic
