#include "testbench/server/call_threads.hpp"

#include <utility>

#include "testbench/app_runner.hpp"

namespace rnic::testbench {

CallThreads::CallThreads() { add_thread(); }

void CallThreads::add_thread() {
  ++idle_;
  sc_core::sc_spawn_options options;
  options.set_stack_size(kAppStackBytes);
  sc_core::sc_spawn([this] { serve(); }, sc_core::sc_gen_unique_name("call_thread"), &options);
}

void CallThreads::run(std::function<void()> job) {
  waiting_.push_back(std::move(job));
  ++under_way_;
  // A thread that works may wait for long.
  if (waiting_.size() > idle_) add_thread();
  more_.notify(sc_core::SC_ZERO_TIME);
}

void CallThreads::forget() {
  under_way_ -= waiting_.size();
  std::exchange(waiting_, {}).clear();
}

void CallThreads::serve() {
  for (;;) {
    // All idle threads are woken; one that finds nothing waits again.
    while (waiting_.empty()) sc_core::wait(more_);
    --idle_;
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    job();
    job = nullptr;
    --under_way_;
    ++idle_;
  }
}

}  // namespace rnic::testbench
