#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace rnic::testbench {

/// A thread that does the same job again and again, each time when it is told to. start and join are for one other
/// thread; what that wrote before start is there for the job, and what the job wrote is there after join. A job that
/// has not begun by then, because others need the cores, is done by whoever joins: nobody waits for a thread that does
/// not run.
class WorkerThread {
 public:
  /// `job` throws nothing.
  explicit WorkerThread(std::function<void()> job);
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  /// The job begins. The one before has been joined.
  void start();
  /// Waits until the job has ended, or does it; returns at once if none was started.
  void join();

 private:
  enum class State : std::uint32_t { kIdle, kOffered, kTaken };

  void work();
  void change(State next);
  [[nodiscard]] bool take(State next);

  std::function<void()> job_;
  std::atomic<State> state_{State::kIdle};
  std::atomic<bool> leave_{false};
  std::thread thread_;
};

}  // namespace rnic::testbench
