#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "driver/win32/handle_table.hpp"
#include "driver/win32/surroundings.hpp"

namespace rnic::win32 {

/// An object that is signaled or not, and that threads wait for. Thread safe.
class Waitable : public HandleObject {
 public:
  /// With a waiter of its own it is waited for through that one, and otherwise through that of the thread that waits.
  explicit Waitable(std::shared_ptr<Waiter> own = nullptr) : own_(std::move(own)) {}

  /// What a wait does that does not wait: true if it was signaled.
  bool try_take();
  /// Waits until it can be taken; false when the time is over, or the thread can wait no more.
  bool wait(std::uint64_t timeout_ns = kForever);

  /// Waits until one of `objects`, or all of them at the same moment, can be taken; `first`: the one that was (with
  /// `all`: 0). If it has ended otherwise, nothing has been taken. Throws std::bad_alloc.
  [[nodiscard]] static Waited wait_for(std::span<const std::shared_ptr<Waitable>> objects, bool all,
                                       std::uint64_t timeout_ns, std::size_t& first);

 protected:
  /// With the lock held.
  [[nodiscard]] virtual bool signaled() const = 0;
  virtual void on_taken() = 0;
  void wake_waiting();

  std::mutex& mutex() { return mutex_; }
  /// Without the lock, behind what may have signaled the object.
  void wake_own() {
    if (own_ != nullptr) own_->wake();
  }

 private:
  class Place;
  bool take_if_signaled();

  const std::shared_ptr<Waiter> own_;
  std::mutex mutex_;
  std::list<Waiter*> waiting_;
};

/// An event of Windows: manual-reset events stay set until reset, others release one waiter.
class Event final : public Waitable {
 public:
  explicit Event(bool manual_reset, bool set = false) : manual_reset_(manual_reset), set_(set) {}
  Event(std::shared_ptr<Waiter> own, bool manual_reset) : Waitable(std::move(own)), manual_reset_(manual_reset) {}

  void set() {
    set([] {});
  }
  /// The same, and whoever sees the event set sees what `with` did. `with` takes no lock.
  template <typename With>
  void set(With&& with) {
    {
      const std::lock_guard lock(mutex());
      with();
      set_ = true;
      wake_waiting();
    }
    wake_own();
  }
  /// Whether it was set before.
  bool set_was() {
    bool was = false;
    set([&] { was = set_; });
    return was;
  }
  void reset();

 private:
  [[nodiscard]] bool signaled() const override { return set_; }
  void on_taken() override {
    if (!manual_reset_) set_ = false;
  }

  const bool manual_reset_;
  bool set_{};
};

}  // namespace rnic::win32
