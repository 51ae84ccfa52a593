#include "driver/spin_lock.hpp"

#include <thread>

namespace rnic {

// It yields: where there are more threads than processors the holder may be one that does not run.
void SpinLock::wait() {
  do {
    std::this_thread::yield();
  } while (taken_.load(std::memory_order_relaxed) || taken_.exchange(true, std::memory_order_acquire));
}

}  // namespace rnic
