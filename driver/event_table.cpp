#include "driver/event_table.hpp"

#include <utility>

namespace rnic {

EventTable::Sinks& EventTable::of(Of kind) {
  switch (kind) {
    case Of::kQp: return qps_;
    case Of::kSrq: return srqs_;
    case Of::kRegion: return regions_;
    case Of::kEndpoint: return endpoints_;
    case Of::kConnection: return connections_;
    case Of::kCq: break;
  }
  return cqs_;
}

void EventTable::subscribe(Of kind, std::uint32_t number, std::weak_ptr<EventSink> sink) {
  const std::lock_guard lock(mutex_);
  of(kind)[number] = std::move(sink);
}

void EventTable::unsubscribe(Of kind, std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  of(kind).erase(number);
}

void EventTable::subscribe_device(std::weak_ptr<EventSink> sink) {
  const std::lock_guard lock(mutex_);
  std::erase_if(device_, [](const auto& old) { return old.second.expired(); });
  const std::uint32_t next = device_.empty() ? 0 : device_.rbegin()->first + 1;
  device_.emplace(next, std::move(sink));
}

bool EventTable::hand_out(const hw::Eqe& eqe) {
  switch (static_cast<hw::EqeType>(eqe.event_type)) {
    case hw::EqeType::kCompletion:
    case hw::EqeType::kCqError: return give(cqs_, eqe), true;
    case hw::EqeType::kQpFatal:
    case hw::EqeType::kQpRequestError:
    case hw::EqeType::kQpAccessError: return give(qps_, eqe), give(connections_, eqe), true;
    case hw::EqeType::kCommEstablished:
    case hw::EqeType::kSqDrained:
    case hw::EqeType::kLastWqeReached: return give(qps_, eqe), true;
    case hw::EqeType::kSrqLimit:
    case hw::EqeType::kSrqError: return give(srqs_, eqe), true;
    case hw::EqeType::kPortActive:
    case hw::EqeType::kPortError: return tell_all(device_, eqe), true;
    case hw::EqeType::kDeviceFatal: break;
  }
  return false;
}

void EventTable::tell(Of kind, const hw::Eqe& eqe) { give(of(kind), eqe); }

/// An event of an object that is gone is late, not wrong.
void EventTable::give(const Sinks& sinks, const hw::Eqe& eqe) {
  std::shared_ptr<EventSink> sink;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = sinks.find(eqe.number); found != sinks.end()) sink = found->second.lock();
  }
  if (sink) sink->on_event(eqe);
}

/// In the order of their numbers. A completion event names each by its own number.
void EventTable::tell_all(const Sinks& sinks, const hw::Eqe& eqe) {
  for (std::uint64_t next = 0;;) {
    std::shared_ptr<EventSink> sink;
    hw::Eqe own = eqe;
    {
      const std::lock_guard lock(mutex_);
      if (next > ~std::uint32_t{0}) return;
      const auto found = sinks.lower_bound(static_cast<std::uint32_t>(next));
      if (found == sinks.end()) return;
      sink = found->second.lock();
      next = std::uint64_t{found->first} + 1;
      if (static_cast<hw::EqeType>(eqe.event_type) == hw::EqeType::kCompletion) own.number = found->first;
    }
    if (sink) sink->on_event(own);
  }
}

void EventTable::tell_everybody(const hw::Eqe& eqe) {
  for (const Sinks* sinks : {&qps_, &srqs_, &cqs_, &endpoints_, &regions_, &device_}) tell_all(*sinks, eqe);
}

void EventTable::tell_completion_queues() {
  tell_all(cqs_, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion)});
}

}  // namespace rnic
