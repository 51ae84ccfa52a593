#include "driver/win32/surroundings.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace rnic::win32 {
namespace {

/// Waits for other threads of the system.
class ThreadWaiter final : public Waiter {
 public:
  Waited wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) override {
    using Clock = std::chrono::steady_clock;
    // A clock that counts in 64-bit nanoseconds ends in some 290 years.
    constexpr std::uint64_t kNever = std::uint64_t{1} << 62;
    const bool limited = timeout_ns < kNever;
    const auto end = Clock::now() + std::chrono::nanoseconds(limited ? timeout_ns : 0);
    for (;;) {
      const std::uint64_t seen = wakes_.load();
      if (done()) return Waited::kDone;
      std::unique_lock lock(mutex_);
      const auto woken = [&] { return wakes_.load() != seen; };
      if (!limited)
        woken_.wait(lock, woken);
      else if (!woken_.wait_until(lock, end, woken))
        return Waited::kTimeout;
    }
  }

  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      ++wakes_;
    }
    woken_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  std::atomic<std::uint64_t> wakes_{};
};

std::atomic<Surroundings*>& chosen() {
  static std::atomic<Surroundings*> instance{};
  return instance;
}

}  // namespace

// One a thread, so that a wake is for those alone who wait for what has happened.
Waiter& Surroundings::waiter() {
  static thread_local ThreadWaiter own;
  return own;
}

std::uint64_t Surroundings::now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

bool Surroundings::start_thread(std::function<void()> body) {
  try {
    std::thread(std::move(body)).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void Surroundings::pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void Surroundings::yield() { std::this_thread::yield(); }

Surroundings& surroundings() {
  static Surroundings usual;
  Surroundings* const other = chosen().load(std::memory_order_acquire);
  return other != nullptr ? *other : usual;
}

void set_surroundings(Surroundings* other) { chosen().store(other, std::memory_order_release); }

}  // namespace rnic::win32
