#include "testbench/server/call_threads.hpp"

#include <utility>

#include "testbench/app_runner.hpp"

namespace rnic::testbench {

CallThreads::CallThreads() { add_thread(); }

void CallThreads::add_thread() {
  sc_core::sc_spawn_options options;
  options.set_stack_size(kAppStackBytes);
  sc_core::sc_spawn([this] { serve(); }, sc_core::sc_gen_unique_name("call_thread"), &options);
}

void CallThreads::run(std::function<void()> job) {
  waiting_.push_back(std::move(job));
  ++under_way_;
  more_.notify(sc_core::SC_ZERO_TIME);
}

void CallThreads::forget() {
  under_way_ -= waiting_.size();
  std::exchange(waiting_, {}).clear();
}

void CallThreads::serve() {
  for (;;) {
    while (waiting_.empty()) {
      ++idle_;
      sc_core::wait(more_);
      --idle_;
    }
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    // All idle threads have been woken; one that finds nothing waits again.
    if (waiting_.size() > idle_) add_thread();
    job();
    job = nullptr;
    --under_way_;
  }
}

}  // namespace rnic::testbench
