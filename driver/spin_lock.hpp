#pragma once

#include <atomic>

namespace rnic {

/// A lock for some hundred instructions: posting, polling, a doorbell. Nothing may wait, and no time pass, while it is
/// held. Free, it costs five instructions where a mutex costs fifty; who finds it taken lets other threads run until it
/// is free.
class SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() {
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  void wait();

  std::atomic<bool> taken_{};
};

}  // namespace rnic
