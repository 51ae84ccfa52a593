#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

namespace rnic::remote {

/// Time of a machine as its processes see it: simulated time, and, while that stands still because nothing is under
/// way, the time that passes outside. The machine writes, all read. All zero is a clock that stands at 0.
class MachineClock {
 public:
  /// Until the next `set` nobody is told a time. The machine holds the clock before it looks how long it has stood
  /// still, or who reads the clock meanwhile is told a time ahead of the machine, and then the same for a while.
  void hold() {
    sequence_.store(sequence_.load(std::memory_order_relaxed) | 1u, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  /// It is `now_ns`, and stays; or goes on with the time outside from `still_since` on (CLOCK_MONOTONIC, ns; not 0),
  /// for at most `most_ns`.
  void set(std::uint64_t now_ns, std::uint64_t still_since, std::uint64_t most_ns = ~std::uint64_t{0}) {
    hold();
    now_ns_.store(now_ns, std::memory_order_relaxed);
    still_since_.store(still_since, std::memory_order_relaxed);
    most_ns_.store(most_ns, std::memory_order_relaxed);
    sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// The time in ns, where `outside` says that outside. Nothing: the machine holds or sets the clock just now.
  template <typename Outside>
  [[nodiscard]] std::optional<std::uint64_t> read(const Outside& outside) const {
    const std::uint32_t before = sequence_.load(std::memory_order_acquire);
    if (before % 2 != 0) return std::nullopt;
    std::uint64_t now = now_ns_.load(std::memory_order_relaxed);
    const std::uint64_t still_since = still_since_.load(std::memory_order_relaxed);
    if (still_since != 0) {
      const std::uint64_t there = outside();
      if (there > still_since) now += std::min(there - still_since, most_ns_.load(std::memory_order_relaxed));
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sequence_.load(std::memory_order_relaxed) != before) return std::nullopt;
    return now;
  }

 private:
  std::atomic<std::uint32_t> sequence_;  ///< Odd: nobody may read
  std::atomic<std::uint64_t> now_ns_;
  std::atomic<std::uint64_t> still_since_;
  std::atomic<std::uint64_t> most_ns_;
};

}  // namespace rnic::remote
