#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <deque>
#include <memory>
#include <mutex>

#include "driver/event_sink.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/verbs/wait_descriptor.hpp"

namespace rnic::verbs {

/// Asynchronous events of a context that its program has not asked for yet, oldest first. Thread safe.
class AsyncEvents {
 public:
  /// `channel`: descriptor of the channel from which the process takes events; closed with this. Errors:
  /// kOutOfResources.
  [[nodiscard]] Result<void> open(int channel);
  [[nodiscard]] const WaitDescriptor& descriptor() const { return descriptor_; }

  /// An event for which there is no memory is lost.
  void put(const ibv_async_event& event);
  /// `counted` is called with the event that is taken before anybody else can remove it. False: there is none.
  template <typename Counted>
  bool take(ibv_async_event& event, Counted&& counted) {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return false;
    event = events_.front();
    events_.pop_front();
    counted(event);
    if (events_.empty()) show(false);
    return true;
  }
  /// The object is going: what waits of it is forgotten.
  void forget(const void* element);

 private:
  void show(bool waits) const;

  WaitDescriptor descriptor_;
  int own_ = -1;       ///< An eventfd, readable while events_ has some
  pid_t process_ = 0;  ///< Whose events they are: a child of fork has the same eventfd
  std::mutex mutex_;
  std::deque<ibv_async_event> events_;
};

/// Makes asynchronous events of the events of one object; null: of the device.
class AsyncSink final : public EventSink {
 public:
  AsyncSink(AsyncEvents& to, void* element) : to_(&to), element_(element) {}
  void on_event(const hw::Eqe& eqe) override;
  /// The object is going. Nothing of it comes any more.
  void stop();

 private:
  std::mutex mutex_;
  AsyncEvents* to_;
  void* const element_;
};

}  // namespace rnic::verbs
