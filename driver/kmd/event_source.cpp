#include "driver/kmd/event_source.hpp"

namespace rnic::kmd {
namespace {

// Handing out lets no time pass, so it is right for coroutines of one thread, too.
thread_local const void* t_reader = nullptr;

}  // namespace

EventSource::Reading::Reading(const void* reader) { t_reader = reader; }
EventSource::Reading::~Reading() { t_reader = nullptr; }

EventSource::EventSource(std::initializer_list<hw::EqeType> types, Machine& machine, const void* reader,
                         std::shared_ptr<EventChannel> completions, std::shared_ptr<EventChannel> others)
    : machine_(machine), reader_(reader), completions_(std::move(completions)), others_(std::move(others)) {
  for (const auto type : types) places_[types_++].event.type = static_cast<std::uint8_t>(type);
}

EventSource::~EventSource() {
  for (std::size_t i = 0; i < types_; ++i) channel_of(places_[i].event.type).remove(places_[i]);
}

void EventSource::name(calls::Handle object, std::uint32_t number) {
  for (std::size_t i = 0; i < types_; ++i) {
    places_[i].event.object = object;
    places_[i].event.number = number;
  }
}

EventChannel& EventSource::channel_of(std::uint8_t type) {
  return type == static_cast<std::uint8_t>(hw::EqeType::kCompletion) ? *completions_ : *others_;
}

void EventSource::on_event(const hw::Eqe& eqe) {
  for (std::size_t i = 0; i < types_; ++i) {
    if (places_[i].event.type != eqe.event_type) continue;
    channel_of(eqe.event_type).put(places_[i], eqe.detail, eqe.timestamp);
    // Another client may have looked in vain while this event was on its way here.
    if (t_reader != reader_) machine_.wake();
    return;
  }
}

}  // namespace rnic::kmd
