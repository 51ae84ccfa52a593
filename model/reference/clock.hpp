#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

/// Time, and what waits for it: the NIC is a set of coroutines that sleep until a time, a Signal, or the answer to a
/// DMA read. Nothing runs in between.
namespace rnic::reference {

using Time = std::uint64_t;  ///< Picoseconds of the NIC's own clock since its reset
inline constexpr Time kNanosecond = 1000, kMicrosecond = 1'000'000;
inline constexpr Time kCycle = 4 * kNanosecond;  ///< Nominal clock: 250 MHz

/// A coroutine that its caller awaits. It starts when it is awaited.
template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;
  struct Base {
    std::coroutine_handle<> continuation;
    std::suspend_always initial_suspend() noexcept { return {}; }
    void unhandled_exception() { std::terminate(); }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(Handle handle) noexcept { return handle.promise().continuation; }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
  };
  struct WithValue : Base {
    std::optional<T> value;
    void return_value(T result) { value = std::move(result); }
  };
  struct promise_type : WithValue {
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
  };

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }
  bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    handle_.promise().continuation = caller;
    return handle_;
  }
  T await_resume() { return std::move(*handle_.promise().value); }

 private:
  Handle handle_;
};

/// Of a Task that has no result.
struct Done {};

/// Runs coroutines and timers in the order of their times; of one time, in the order in which they came.
class Clock {
 public:
  ~Clock() { stop(); }
  /// Ends all coroutines where they are.
  void stop() {
    while (!threads_.empty()) threads_.begin()->destroy();  // whose frame leaves the set
  }

  [[nodiscard]] Time now() const { return now_; }
  /// `action` happens at `time`, or now if that is past.
  void at(Time time, std::function<void()> action) {
    timers_.push({time < now_ ? now_ : time, ++order_, std::move(action)});
  }
  void resume(std::coroutine_handle<> handle) {
    at(now_, [handle] { handle.resume(); });
  }
  /// Everything up to `time` happens.
  void run(Time time) {
    while (!timers_.empty() && timers_.top().time <= time) {
      now_ = timers_.top().time;
      const auto action = std::move(const_cast<Timer&>(timers_.top()).action);  // it is popped at once
      timers_.pop();
      action();
    }
    now_ = time;
  }
  [[nodiscard]] std::optional<Time> next() const {
    return timers_.empty() ? std::nullopt : std::optional(timers_.top().time);
  }

  /// A coroutine of its own, which runs until it ends or the clock is destroyed.
  void spawn(Task<Done> task) { start(*this, std::move(task)); }

 private:
  struct Timer {
    Time time;
    std::uint64_t order;
    std::function<void()> action;
    bool operator<(const Timer& other) const { return std::pair(time, order) > std::pair(other.time, other.order); }
  };
  struct Thread {
    struct promise_type {
      promise_type(Clock& clock, Task<Done>&) : owner(clock) {
        owner.threads_.insert(std::coroutine_handle<promise_type>::from_promise(*this));
      }
      ~promise_type() { owner.threads_.erase(std::coroutine_handle<promise_type>::from_promise(*this)); }
      Thread get_return_object() { return {}; }
      std::suspend_never initial_suspend() noexcept { return {}; }
      std::suspend_never final_suspend() noexcept { return {}; }
      void return_void() {}
      void unhandled_exception() { std::terminate(); }
      Clock& owner;
    };
  };
  static Thread start(Clock&, Task<Done> task) { co_await task; }

  Time now_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<Timer> timers_;
  std::set<std::coroutine_handle<>> threads_;
};

/// A timer that is set anew and stopped far more often than it ends: the clock knows of one time of it, no later than
/// its own, and not of each that it once had.
class Deadline {
 public:
  /// `over` happens at the end, unless the deadline has gone by then.
  Deadline(Clock& clock, std::function<void()> over) : clock_(clock), over_(std::move(over)) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(Time time) {
    time_ = time;
    if (!known_ || *known_ > time) tell(time);
  }
  void stop() { time_.reset(); }
  [[nodiscard]] bool runs() const { return time_.has_value(); }

 private:
  void tell(Time time) {
    known_ = time;
    clock_.at(time, [this, time, here = std::weak_ptr(here_)] {
      if (!here.expired() && known_ == time) look();
    });
  }
  void look() {
    known_.reset();
    if (time_ && *time_ > clock_.now()) return tell(*time_);
    if (std::exchange(time_, std::nullopt)) over_();
  }

  Clock& clock_;
  const std::function<void()> over_;
  std::optional<Time> time_, known_;
  const std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
};

/// Something that coroutines wait for. Whoever wakes looks again whether what it waits for is there.
class Signal {
 public:
  explicit Signal(Clock& clock) : clock_(clock) {}
  struct Waiter {
    Signal& signal;
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> handle) { signal.waiting_.push_back(handle); }
    void await_resume() {}
  };
  Waiter wait() { return {*this}; }
  void raise() {
    for (const auto handle : std::exchange(waiting_, {})) clock_.resume(handle);
  }

 private:
  Clock& clock_;
  std::vector<std::coroutine_handle<>> waiting_;
};

}  // namespace rnic::reference
