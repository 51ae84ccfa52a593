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
  std::erase_if(device_sinks_, [](const auto& old) { return old.expired(); });
  device_sinks_.push_back(std::move(sink));
}

unsigned KernelDevice::dispatch_events() {
  unsigned taken = 0;
  for (auto& queue : event_queues_) {
    const unsigned from_queue = queue->drain([this](const hw::Eqe& eqe) { hand_out(eqe); });
    taken += from_queue;
    if (from_queue >= queue->depth()) rescan();
  }
  return taken;
}

void KernelDevice::rescan() {
  std::vector<std::uint32_t> numbers;
  {
    const std::lock_guard lock(sinks_mutex_);
    for (const auto& [cqn, sink] : cq_sinks_) numbers.push_back(cqn);
  }
  for (const std::uint32_t cqn : numbers) {
    hand_out({.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion), .number = cqn});
  }
}

void KernelDevice::hand_out(const hw::Eqe& eqe) {
  std::vector<std::shared_ptr<EventSink>> sinks;
  {
    const std::lock_guard lock(sinks_mutex_);
    // An event of an object that is gone is late, not wrong.
    const auto find = [&](const auto& of_objects) {
      if (const auto found = of_objects.find(eqe.number); found != of_objects.end()) sinks.push_back(found->second.lock());
    };
    switch (static_cast<hw::EqeType>(eqe.event_type)) {
      case hw::EqeType::kCompletion:
      case hw::EqeType::kCqError: find(cq_sinks_); break;
      case hw::EqeType::kQpFatal:
      case hw::EqeType::kQpRequestError:
      case hw::EqeType::kQpAccessError:
      case hw::EqeType::kCommEstablished:
      case hw::EqeType::kSqDrained:
      case hw::EqeType::kLastWqeReached: find(qp_sinks_); break;
      case hw::EqeType::kSrqLimit:
      case hw::EqeType::kSrqError: find(srq_sinks_); break;
      case hw::EqeType::kDeviceFatal:
      case hw::EqeType::kPortActive:
      case hw::EqeType::kPortError:
        for (const auto& sink : device_sinks_) sinks.push_back(sink.lock());
        break;
    }
  }
  for (const auto& sink : sinks) {
    if (sink) sink->on_event(eqe);
  }
}

bool KernelDevice::wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) {
  const std::uint64_t start = device_.now_ns();
  const std::uint32_t vector = event_queues_.front()->vector();
  for (;;) {
    if (const unsigned taken = dispatch_events(); taken != 0) device_.elapse(taken * cost::kEventNs);
    if (done()) return true;
    const std::uint64_t passed = device_.now_ns() - start;
    if (passed >= timeout_ns) return false;
    // Bounded, because another thread may take the interrupt, or the event may come through another vector.
    if (device_.wait_interrupt(vector, std::min(timeout_ns - passed, cost::kRecheckNs))) {
      device_.elapse(cost::kInterruptNs);
    }
  }
}

}  // namespace rnic::kmd
