#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <systemc>

namespace rnic::testbench {

/// Threads of simulated time for what is asked for from outside of it: what runs on one may let time pass. There are as
/// many as there were ever jobs under way at once.
class CallThreads {
 public:
  /// Before the simulation begins, as a module.
  CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  /// Has `job` begin when the simulation goes on, behind those that were given before. It throws nothing.
  void run(std::function<void()> job);
  /// Jobs that have not begun never will, and are gone.
  void forget();
  /// Jobs that have not ended.
  [[nodiscard]] std::size_t under_way() const { return under_way_; }

 private:
  void add_thread();
  void serve();

  std::deque<std::function<void()>> waiting_;
  std::size_t under_way_ = 0;
  std::size_t idle_ = 0;  ///< Threads, those that have not begun among them
  sc_core::sc_event more_;
};

}  // namespace rnic::testbench
