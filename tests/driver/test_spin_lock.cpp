#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/spin_lock.hpp"

using rnic::SpinLock;

TEST_CASE("a spin lock has one holder, also with more threads than processors") {
  constexpr unsigned kThreads = 8;
  constexpr unsigned kRounds = 2'000;
  SpinLock lock;
  // Read and written apart, so that a second holder loses a count.
  std::atomic<unsigned> rounds{};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (unsigned round = 0; round < kRounds; ++round) {
        const std::lock_guard guard(lock);
        const unsigned before = rounds.load(std::memory_order_relaxed);
        if (round % 8 == 0) std::this_thread::yield();
        rounds.store(before + 1, std::memory_order_relaxed);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(rounds == kThreads * kRounds);
}
