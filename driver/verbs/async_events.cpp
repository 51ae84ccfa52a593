#include "driver/verbs/async_events.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "driver/unnoticed.hpp"

namespace rnic::verbs {

Result<void> AsyncEvents::open(int channel) {
  const Unnoticed unnoticed;
  if (auto opened = descriptor_.open(); !opened) {
    close(channel);
    return opened;
  }
  if (auto added = descriptor_.add(channel); !added) return added;
  process_ = getpid();
  own_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (own_ < 0) return Error::kOutOfResources;
  return descriptor_.add(own_);
}

void AsyncEvents::put(const ibv_async_event& event) {
  const std::lock_guard lock(mutex_);
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc&) {
    return;
  }
  if (events_.size() == 1) show(true);
}

void AsyncEvents::forget(const void* element) {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return;
  const auto is_of_it = [element](const ibv_async_event& event) {
    const bool of_object = event.event_type < IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_SRQ_ERR ||
                           event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED ||
                           event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    return of_object && event.element.qp == element;
  };
  std::erase_if(events_, is_of_it);
  if (events_.empty()) show(false);
}

void AsyncEvents::show(bool waits) const {
  if (getpid() != process_) return;
  const Unnoticed unnoticed;
  eventfd_t count{};
  static_cast<void>(waits ? eventfd_write(own_, 1) : eventfd_read(own_, &count));
}

void AsyncSink::on_event(const hw::Eqe& eqe) {
  const auto type = static_cast<hw::EqeType>(eqe.event_type);
  ibv_async_event event{};
  event.element.qp = static_cast<ibv_qp*>(element_);
  switch (type) {
    case hw::EqeType::kCompletion: return;
    case hw::EqeType::kCqError: event.event_type = IBV_EVENT_CQ_ERR; break;
    case hw::EqeType::kQpFatal: event.event_type = IBV_EVENT_QP_FATAL; break;
    default: event.event_type = static_cast<ibv_event_type>(eqe.event_type - 0x10); break;  // docs/host_interface.md
  }
  if (element_ == nullptr) {
    event.element.port_num = 1;
  } else if (type == hw::EqeType::kDeviceFatal) {
    return;  // told once, by the context
  }
  const std::lock_guard lock(mutex_);
  if (to_ != nullptr) to_->put(event);
}

void AsyncSink::stop() {
  const std::lock_guard lock(mutex_);
  if (to_ == nullptr) return;
  if (element_ != nullptr) to_->forget(element_);
  to_ = nullptr;
}

}  // namespace rnic::verbs
