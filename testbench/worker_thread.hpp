#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace rnic::testbench {

/// A thread that does the same job again and again, each time when it is told to. start and join are for one other
/// thread; what that wrote before start is there for the job, and what the job wrote is there after join.
class WorkerThread {
 public:
  /// `job` throws nothing.
  explicit WorkerThread(std::function<void()> job);
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  /// The job begins. The one before has been joined.
  void start();
  /// Waits until the job has ended; returns at once if none was started.
  void join();

 private:
  void work();

  std::function<void()> job_;
  /// Jobs that were started, and that have ended, modulo 2^32.
  std::atomic<std::uint32_t> started_{0};
  std::atomic<std::uint32_t> ended_{0};
  std::atomic<bool> leave_{false};
  std::thread thread_;
};

}  // namespace rnic::testbench
