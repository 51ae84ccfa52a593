#include "testbench/side_by_side.hpp"

#include <algorithm>
#include <exception>
#include <systemc>
#include <utility>

#include "testbench/app_runner.hpp"

namespace rnic::testbench {
namespace {

/// The threads of one call. Destroyed before they have ended only when the caller is unwound: then they are, too.
class Crew {
 public:
  explicit Crew(const std::vector<std::function<void()>>& tasks) : tasks_(tasks) {}
  ~Crew() {
    for (auto& thread : threads_) {
      if (!thread.terminated()) thread.kill();
    }
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void run(std::size_t threads) {
    running_ = threads;
    for (std::size_t i = 0; i < threads; ++i) {
      sc_core::sc_spawn_options options;
      options.set_stack_size(kAppStackBytes);
      threads_.push_back(sc_core::sc_spawn([this] { work(); }, sc_core::sc_gen_unique_name("crew"), &options));
    }
    while (running_ != 0) sc_core::wait(ended_);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void work() {
    try {
      while (next_ < tasks_.size() && !failure_) tasks_[next_++]();
    } catch (const sc_core::sc_unwind_exception&) {
      throw;
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
    --running_;
    ended_.notify(sc_core::SC_ZERO_TIME);
  }

  const std::vector<std::function<void()>>& tasks_;
  std::vector<sc_core::sc_process_handle> threads_;
  std::size_t next_ = 0, running_ = 0;
  std::exception_ptr failure_;
  sc_core::sc_event ended_;
};

bool time_can_pass() {
  const sc_core::sc_process_handle process = sc_core::sc_get_current_process_handle();
  return process.valid() && process.proc_kind() == sc_core::SC_THREAD_PROC_ && !process.is_unwinding() &&
         std::uncaught_exceptions() == 0;
}

}  // namespace

void side_by_side(const std::vector<std::function<void()>>& tasks, std::size_t most) {
  const std::size_t threads = std::min(tasks.size(), most);
  if (threads <= 1 || !time_can_pass()) {
    for (const auto& task : tasks) task();
    return;
  }
  Crew(tasks).run(threads);
}

}  // namespace rnic::testbench
