#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "driver/unnoticed.hpp"

namespace rnic::remote {

/// Waits while `word`, which processes share, is `seen`, at most `timeout_ns`; may return sooner.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t timeout_ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const timespec time{static_cast<time_t>(timeout_ns / kSecond), static_cast<long>(timeout_ns % kSecond)};
  const Unnoticed unnoticed;
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

/// Wakes all who wait.
inline void futex_wake(std::atomic<std::uint32_t>& word) {
  const Unnoticed unnoticed;
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// A word that counts, and on which others may wait: who makes it another one makes a system call only if somebody
/// does.
struct CountedWord {
  std::atomic<std::uint32_t> count;
  std::atomic<std::uint32_t> waiters;

  void advance() {
    count.fetch_add(1);
    if (waiters.load() != 0) futex_wake(count);
  }
  void wait(std::uint32_t seen, std::uint64_t timeout_ns) {
    waiters.fetch_add(1);
    if (count.load() == seen) futex_wait(count, seen, timeout_ns);
    waiters.fetch_sub(1);
  }
};

}  // namespace rnic::remote
