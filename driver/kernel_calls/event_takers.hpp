#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace rnic {

/// Who takes the events of one client from the kernel driver and hands them out in the process.
class EventTaker {
 public:
  virtual ~EventTaker() = default;
  /// Returns the number taken. Lets no time pass.
  virtual unsigned take_events() = 0;
  /// Does what has come of the events that were taken, as far as that needs calls. Lets time pass.
  virtual void work() {}
  /// The device has not failed for this client.
  [[nodiscard]] virtual bool working() = 0;
  /// Some thread is in take_events. Machine::wake follows its end.
  [[nodiscard]] virtual bool handing_out() = 0;
  /// Has the kernel driver look whether the device is well. Lets time pass.
  virtual void check_device() = 0;
};

/// All of them that a process has for one device: whoever waits runs them. Thread safe; running them needs no memory.
class EventTakers {
 public:
  /// Until it dies. Throws std::bad_alloc.
  void add(std::weak_ptr<EventTaker> taker);

  unsigned take_events();
  void work();
  /// There is none, or the device works for one of them.
  [[nodiscard]] bool any_working();
  /// What was taken may not have reached its receiver yet.
  [[nodiscard]] bool any_handing_out();
  void check_device();

 private:
  /// Without the lock while one of them is asked. One that comes or goes meanwhile may or may not be.
  template <typename Ask>
  void each(Ask&& ask);

  std::mutex mutex_;
  std::vector<std::weak_ptr<EventTaker>> takers_;
};

}  // namespace rnic
