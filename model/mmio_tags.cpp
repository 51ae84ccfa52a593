#include "model/mmio_tags.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "model/timed_event.hpp"
#include "model/tlp_checker.hpp"

namespace rnic::model {
namespace {

/// Read completion boundary of an endpoint (base specification 2.3.1.1).
constexpr std::uint64_t kBoundary = 128;

void require(bool holds, const std::string& rule) {
  if (!holds) throw PcieProtocolError("completion of a host read: " + rule);
}

}  // namespace

MmioTags::Lease::Lease(MmioTags& tags, const ByteRange& range, TlpHandling handling)
    : tags_(tags), epoch_(tags.epoch_) {
  for (;;) {
    const auto slot =
        std::find_if(tags_.slots_.begin(), tags_.slots_.end(), [](const Slot& s) { return s.state == State::kFree; });
    if (slot != tags_.slots_.end()) {
      slot->state = State::kWaiting;
      slot->left = range;
      slot->handling = handling;
      slot->completion = {};
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

const HostCompletion* MmioTags::Lease::wait(Picoseconds timeout) {
  Slot& slot = tags_.slots_[tag_];
  const Picoseconds end = time_in(timeout);
  while (slot.state == State::kWaiting && now_ps() < end) wait_until(end, slot.event);
  return slot.state == State::kDone ? &slot.completion : nullptr;
}

MmioTags::Taken MmioTags::complete(HostCompletion completion) {
  if (completion.tag >= kTags) return Taken::kByNobody;
  Slot& slot = slots_[completion.tag];
  if (slot.state != State::kWaiting && slot.state != State::kAbandoned) return Taken::kByNobody;
  require(completion.handling.traffic_class == slot.handling.traffic_class,
          "traffic class is not that of the request (2.2.9)");
  // ID-based ordering would be the completer's own choice (2.2.6.4); the NIC's contract is to have that of the request.
  require(completion.handling.attributes == slot.handling.attributes,
          "attributes are not those of the request (2.2.9)");
  if (completion.status == CompletionStatus::kSuccess) {
    const std::uint64_t begin = slot.left.address;
    require(completion.byte_count == slot.left.length, "byte count is not what is left (2.2.9)");
    require(completion.lower_address == begin % kBoundary, "lower address is not where it begins (2.2.9)");
    const std::uint64_t in_first_dword = begin % 4;
    require(completion.data.size() > in_first_dword, "no data");
    const std::uint64_t bytes = std::min<std::uint64_t>(slot.left.length, completion.data.size() - in_first_dword);
    const std::uint64_t padded = (in_first_dword + bytes + 3) / 4 * 4;
    require(completion.data.size() == padded, "more data than is left (2.2.9)");
    const bool last = bytes == slot.left.length;
    require(last || (begin + bytes) % kBoundary == 0, "it ends between two multiples of 128 bytes (2.3.1.1)");
    slot.left = {begin + bytes, static_cast<std::uint32_t>(slot.left.length - bytes)};
    auto& data = slot.completion.data;
    completion.data.insert(completion.data.begin(), data.begin(), data.end());
    if (!last) {
      data = std::move(completion.data);
      return slot.state == State::kWaiting ? Taken::kByItsRequest : Taken::kTooLate;
    }
  }
  if (slot.state == State::kAbandoned) {
    slot.state = State::kFree;
    freed_.notify();
    return Taken::kTooLate;
  }
  slot.completion = std::move(completion);
  slot.state = State::kDone;
  slot.event.notify();
  return Taken::kByItsRequest;
}

void MmioTags::reset() {
  for (Slot& slot : slots_) slot.state = State::kFree;
  ++epoch_;
}

}  // namespace rnic::model
