#include "testbench/worker_thread.hpp"

#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rnic::testbench {
namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until `counter` is no longer `old`. A clock cycle takes some microseconds, so that the other thread is mostly
/// about to be done: to sleep and be woken takes as long. Who has waited for longer sleeps, since somebody else may
/// need the core.
void wait_for_change(const std::atomic<std::uint32_t>& counter, std::uint32_t old) {
  constexpr int kLooks = 2000;
  for (int i = 0; i < kLooks; ++i) {
    if (counter.load(std::memory_order_acquire) != old) return;
    pause();
  }
  counter.wait(old, std::memory_order_acquire);
}

}  // namespace

WorkerThread::WorkerThread(std::function<void()> job) : job_(std::move(job)), thread_([this] { work(); }) {}

WorkerThread::~WorkerThread() {
  join();
  leave_ = true;
  start();
  thread_.join();
}

void WorkerThread::start() {
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_one();
}

void WorkerThread::join() {
  const std::uint32_t last = started_.load(std::memory_order_relaxed);
  // At most one is under way.
  if (ended_.load(std::memory_order_acquire) != last) wait_for_change(ended_, last - 1);
}

void WorkerThread::work() {
  for (std::uint32_t done = 0;; ++done) {
    wait_for_change(started_, done);
    if (leave_) return;
    job_();
    ended_.store(done + 1, std::memory_order_release);
    ended_.notify_one();
  }
}

}  // namespace rnic::testbench
