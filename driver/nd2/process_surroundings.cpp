#include "driver/nd2/process_surroundings.hpp"

#include <algorithm>
#include <chrono>

namespace rnic::nd2 {
namespace {

/// How often who waits without a device that works looks whether there is one again.
constexpr std::uint64_t kLookNs = 100'000'000;

std::uint64_t own_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace

std::uint64_t ProcessSurroundings::now_ns() {
  if (!node_.machine().removed()) return node_.machine().now_ns();
  std::call_once(end_, [&] {
    machine_end_ = node_.machine().now_ns();
    own_end_ = own_ns();
  });
  return machine_end_ + (own_ns() - own_end_);
}

/// Through the device as long as one works; and without, because other threads may still signal what is waited for.
win32::Waited ProcessSurroundings::wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) {
  const std::uint64_t begun = now_ns();
  for (;;) {
    const std::uint64_t seen = wakes_.load();
    const std::uint64_t passed = now_ns() - begun;
    const std::uint64_t left = timeout_ns == win32::kForever ? kForever : timeout_ns - std::min(timeout_ns, passed);
    if (umd::wait_until(node_, done, left)) return win32::Waited::kDone;
    if (timeout_ns == 0) umd::poll_in_vain(node_.machine());
    if (now_ns() - begun >= timeout_ns) return win32::Waited::kTimeout;
    ++without_device_;
    {
      std::unique_lock lock(mutex_);
      woken_.wait_for(lock, std::chrono::nanoseconds(std::min(left, kLookNs)), [&] { return wakes_.load() != seen; });
    }
    --without_device_;
  }
}

void ProcessSurroundings::yield() {
  spins_.look(node_);
  win32::Surroundings::yield();
}

void ProcessSurroundings::wake() {
  node_.machine().wake();
  ++wakes_;
  if (without_device_.load() == 0) return;
  { const std::lock_guard lock(mutex_); }
  woken_.notify_all();
}

}  // namespace rnic::nd2
