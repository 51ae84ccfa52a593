#pragma once

#include <atomic>
#include <memory>
#include <mutex>

namespace rnic::umd {

/// Something of a process that goes on when an event has come, by calls that let time pass: more than whoever hands out
/// events may do.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;

  /// Goes on as far as it can. Called by any thread, by several at once, and also in vain. Lets time pass.
  virtual void work() = 0;

 private:
  friend class WorkList;
  std::shared_ptr<Worker> next_;
  bool waits_{};  ///< In the list
  bool gone_{};   ///< It will never work again
};

/// Those of a process that have something to do, in the order in which they came. Needs no memory. Thread safe.
class WorkList {
 public:
  /// Nothing happens if it waits already, or was removed. Lets no time pass.
  void put(std::shared_ptr<Worker> worker);
  /// It is not called any more, but by a thread that is about it. Lets no time pass.
  void remove(Worker& worker);
  /// Has all that wait work. Lets time pass.
  void run();
  [[nodiscard]] bool empty() const { return size_.load(std::memory_order_acquire) == 0; }

 private:
  [[nodiscard]] std::shared_ptr<Worker> take();

  std::mutex mutex_;
  std::shared_ptr<Worker> first_;
  Worker* last_{};
  std::atomic<unsigned> size_{};
};

}  // namespace rnic::umd
