#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "driver/event_sink.hpp"
#include "driver/ndk/object.hpp"
#include "driver/spin_lock.hpp"

namespace rnic::ndk {

/// Something that an object has the worker do again and again: asked for while it waits already, it is done once.
/// Asking needs no memory; the object is held until it is done.
class Errand final : public Work {
 public:
  /// Throws std::bad_alloc.
  Errand(Object& object, std::function<void()> body) : object_(object), body_(std::move(body)) {}

  void ask() {
    if (asked_.exchange(true)) return;
    object_.hold();
    object_.worker().submit(*this);
  }

 private:
  void run() override {
    asked_ = false;
    body_();
    object_.release();
  }

  Object& object_;
  const std::function<void()> body_;
  std::atomic<bool> asked_{};
};

/// Takes the events of something for an object that may end while one is on its way.
class Listening final : public EventSink {
 public:
  /// `taker` is called until stop. Throws std::bad_alloc.
  explicit Listening(std::function<void(const hw::Eqe&)> taker) : taker_(std::move(taker)) {}
  /// It is called no more when this returns.
  void stop() {
    const std::lock_guard lock(lock_);
    stopped_ = true;
  }
  void on_event(const hw::Eqe& eqe) override {
    const std::lock_guard lock(lock_);
    if (!stopped_) taker_(eqe);
  }

 private:
  SpinLock lock_;
  const std::function<void(const hw::Eqe&)> taker_;
  bool stopped_{};
};

}  // namespace rnic::ndk
