#include "model/mmio_tags.hpp"

#include <algorithm>
#include <utility>

namespace rnic::model {

MmioTags::Lease::Lease(MmioTags& tags) : tags_(tags), epoch_(tags.epoch_) {
  for (;;) {
    const auto slot =
        std::find_if(tags_.slots_.begin(), tags_.slots_.end(), [](const Slot& s) { return s.state == State::kFree; });
    if (slot != tags_.slots_.end()) {
      slot->state = State::kWaiting;
      tag_ = static_cast<std::uint16_t>(slot - tags_.slots_.begin());
      return;
    }
    sc_core::wait(tags_.freed_);
  }
}

MmioTags::Lease::~Lease() {
  if (epoch_ != tags_.epoch_) return;
  Slot& slot = tags_.slots_[tag_];
  slot.state = slot.state == State::kDone ? State::kFree : State::kAbandoned;
  if (slot.state == State::kFree) tags_.freed_.notify();
}

const HostCompletion* MmioTags::Lease::wait(const sc_core::sc_time& timeout) {
  Slot& slot = tags_.slots_[tag_];
  const sc_core::sc_time end = sc_core::sc_time_stamp() + timeout;
  while (slot.state == State::kWaiting && sc_core::sc_time_stamp() < end) {
    sc_core::wait(end - sc_core::sc_time_stamp(), slot.event);
  }
  return slot.state == State::kDone ? &slot.completion : nullptr;
}

bool MmioTags::complete(HostCompletion completion) {
  if (completion.tag >= kTags) return false;
  Slot& slot = slots_[completion.tag];
  if (slot.state == State::kAbandoned) {
    slot.state = State::kFree;
    freed_.notify();
    return false;
  }
  if (slot.state != State::kWaiting) return false;
  slot.completion = std::move(completion);
  slot.state = State::kDone;
  slot.event.notify();
  return true;
}

void MmioTags::reset() {
  for (Slot& slot : slots_) slot.state = State::kFree;
  ++epoch_;
}

}  // namespace rnic::model
