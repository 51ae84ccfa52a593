#include <algorithm>
#include <utility>

#include "driver/costs.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

void KernelDevice::subscribe_cq(std::uint32_t cqn, std::weak_ptr<EventSink> sink) {
  const std::lock_guard lock(sinks_mutex_);
  cq_sinks_[cqn] = std::move(sink);
}

void KernelDevice::unsubscribe_cq(std::uint32_t cqn) {
  const std::lock_guard lock(sinks_mutex_);
  cq_sinks_.erase(cqn);
}

void KernelDevice::subscribe_qp(std::uint32_t qpn, std::weak_ptr<EventSink> sink) {
  const std::lock_guard lock(sinks_mutex_);
  qp_sinks_[qpn] = std::move(sink);
}

void KernelDevice::unsubscribe_qp(std::uint32_t qpn) {
  const std::lock_guard lock(sinks_mutex_);
  qp_sinks_.erase(qpn);
}

void KernelDevice::subscribe_srq(std::uint32_t srqn, std::weak_ptr<EventSink> sink) {
  const std::lock_guard lock(sinks_mutex_);
  srq_sinks_[srqn] = std::move(sink);
}

void KernelDevice::unsubscribe_srq(std::uint32_t srqn) {
  const std::lock_guard lock(sinks_mutex_);
  srq_sinks_.erase(srqn);
}

void KernelDevice::subscribe_device(std::weak_ptr<EventSink> sink) {
  const std::lock_guard lock(sinks_mutex_);
  std::erase_if(device_sinks_, [](const auto& old) { return old.second.expired(); });
  const std::uint32_t next = device_sinks_.empty() ? 0 : device_sinks_.rbegin()->first + 1;
  device_sinks_.emplace(next, std::move(sink));
}

unsigned KernelDevice::dispatch_events() {
  unsigned taken = 0;
  const auto life = this->life();
  for (auto& queue : life->event_queues) {
    const unsigned from_queue = queue->drain([this, &life](const hw::Eqe& eqe) { hand_out(*life, eqe); });
    taken += from_queue;
    if (from_queue >= queue->depth()) rescan();
  }
  return taken;
}

void KernelDevice::rescan() {
  tell_all(cq_sinks_, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion)});
}

/// Takes no memory: an entry that was taken from the ring must reach its sink.
void KernelDevice::hand_out(DeviceLife& life, const hw::Eqe& eqe) {
  const auto give = [&](const Sinks& of_objects) {
    std::shared_ptr<EventSink> sink;
    {
      const std::lock_guard lock(sinks_mutex_);
      // An event of an object that is gone is late, not wrong.
      if (const auto found = of_objects.find(eqe.number); found != of_objects.end()) sink = found->second.lock();
    }
    if (sink) sink->on_event(eqe);
  };
  switch (static_cast<hw::EqeType>(eqe.event_type)) {
    case hw::EqeType::kCompletion:
    case hw::EqeType::kCqError: return give(cq_sinks_);
    case hw::EqeType::kQpFatal:
    case hw::EqeType::kQpRequestError:
    case hw::EqeType::kQpAccessError:
    case hw::EqeType::kCommEstablished:
    case hw::EqeType::kSqDrained:
    case hw::EqeType::kLastWqeReached: return give(qp_sinks_);
    case hw::EqeType::kSrqLimit:
    case hw::EqeType::kSrqError: return give(srq_sinks_);
    case hw::EqeType::kDeviceFatal: return fail(life);
    case hw::EqeType::kPortActive:
    case hw::EqeType::kPortError: return tell_all(device_sinks_, eqe);
  }
  device_.report(DeviceOddity::kUnknownEvent, eqe.event_type);
}

/// In the order of their numbers, without the lock while one of them is told, and without memory of its own. One that
/// comes or goes meanwhile may or may not be told. A completion event names each by its own number.
void KernelDevice::tell_all(const Sinks& of_objects, const hw::Eqe& eqe) {
  for (std::uint64_t next = 0;;) {
    std::shared_ptr<EventSink> sink;
    hw::Eqe own = eqe;
    {
      const std::lock_guard lock(sinks_mutex_);
      if (next > ~std::uint32_t{0}) return;
      const auto found = of_objects.lower_bound(static_cast<std::uint32_t>(next));
      if (found == of_objects.end()) return;
      sink = found->second.lock();
      next = std::uint64_t{found->first} + 1;
      if (static_cast<hw::EqeType>(eqe.event_type) == hw::EqeType::kCompletion) own.number = found->first;
    }
    if (sink) sink->on_event(own);
  }
}

void KernelDevice::tell_everybody(const hw::Eqe& eqe) {
  for (const Sinks* of_objects : {&qp_sinks_, &srq_sinks_, &cq_sinks_, &device_sinks_}) tell_all(*of_objects, eqe);
}

bool KernelDevice::wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) {
  const std::uint64_t start = device_.now_ns();
  const auto life = this->life();
  for (;;) {
    const std::uint64_t seen = device_.wake_count();
    if (const unsigned taken = dispatch_events(); taken != 0) device_.elapse(taken * cost::kEventNs);
    const bool usable = this->usable(*life);
    if (done()) return true;
    const std::uint64_t passed = device_.now_ns() - start;
    if (!usable || passed >= timeout_ns) return false;
    const std::uint64_t left = timeout_ns - passed;
    if (device_.wait(seen, std::min(left, cost::kHealthNs))) {
      device_.elapse(cost::kInterruptNs);
    } else if (left > cost::kHealthNs) {
      check_health(*life);
    }
  }
}

}  // namespace rnic::kmd
