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

/// Waits until `state` is no longer `old`. A clock cycle takes some microseconds, so that the other thread is mostly
/// about to be done: to sleep and be woken takes as long. Who has waited for longer sleeps, since somebody else may
/// need the core.
template <typename State>
void wait_for_change(const std::atomic<State>& state, State old) {
  constexpr int kLooks = 2000;
  for (int i = 0; i < kLooks; ++i) {
    if (state.load(std::memory_order_acquire) != old) return;
    pause();
  }
  state.wait(old, std::memory_order_acquire);
}

}  // namespace

WorkerThread::WorkerThread(std::function<void()> job) : job_(std::move(job)), thread_([this] { work(); }) {}

WorkerThread::~WorkerThread() {
  join();
  leave_ = true;
  start();
  thread_.join();
}

void WorkerThread::start() { change(State::kOffered); }

/// Wakes the other. libstdc++ looks whether anybody waits with a plain load, which a processor may do before a store
/// that is only released: then one that begins to wait meanwhile sees neither the change nor the notice, for ever.
void WorkerThread::change(State next) {
  state_.store(next, std::memory_order_seq_cst);
  state_.notify_one();
}

/// Of an offer, by one of the two.
bool WorkerThread::take(State next) {
  State offered = State::kOffered;
  return state_.compare_exchange_strong(offered, next, std::memory_order_acquire);
}

void WorkerThread::join() {
  if (take(State::kIdle)) return job_();
  if (state_.load(std::memory_order_acquire) == State::kTaken) wait_for_change(state_, State::kTaken);
}

void WorkerThread::work() {
  while (!leave_) {
    wait_for_change(state_, State::kIdle);
    if (leave_ || !take(State::kTaken)) continue;
    job_();
    change(State::kIdle);
  }
}

}  // namespace rnic::testbench
