#include "testbench/server/helped_memory.hpp"

#include <algorithm>
#include <utility>

#include "driver/remote/outside_time.hpp"

namespace rnic::testbench {
namespace {

using Slot = MemoryChannel::Slot;

/// So often an answer is looked for before the machine sleeps.
constexpr int kLooks = 1000;
/// Then it looks what the helper does.
constexpr std::uint64_t kLookNs = 2'000'000;

std::shared_ptr<model::ProcessMemory::Access> refused() {
  auto access = std::make_shared<model::ProcessMemory::Access>();
  access->done = true;
  return access;
}

}  // namespace

HelpedMemory::HelpedMemory(std::unique_ptr<MemoryHelpers::Helper> helper) : helper_(std::move(helper)) {}

HelpedMemory::Reach HelpedMemory::opened() {
  if (answered_ == 0 && wait()) answered_ = 1;
  return !lost_.empty() ? Reach::kNo : static_cast<Reach>(helper_->channel().opened);
}

/// Null: nobody answers.
Slot* HelpedMemory::next_slot() {
  static_cast<void>(opened());
  while (lost_.empty() && under_way_.size() == MemoryChannel::kSlots) take_answer();
  return !lost_.empty() ? nullptr : &helper_->channel().slot(asked_);
}

std::shared_ptr<HelpedMemory::Access> HelpedMemory::begin() {
  auto access = std::make_shared<Access>();
  under_way_.push_back(access);
  ++asked_;
  helper_->channel().asked.advance();
  return access;
}

std::shared_ptr<HelpedMemory::Access> HelpedMemory::read(std::uint64_t address, std::size_t bytes) {
  Slot* const slot = bytes <= MemoryChannel::kMostBytes ? next_slot() : nullptr;
  if (slot == nullptr) return refused();
  slot->kind = Slot::Kind::kRead;
  slot->address = address;
  slot->length = bytes;
  return begin();
}

std::shared_ptr<HelpedMemory::Access> HelpedMemory::write(std::uint64_t address, const model::DmaRequest& request) {
  Slot* const slot = request.data.size() <= MemoryChannel::kMostBytes ? next_slot() : nullptr;
  if (slot == nullptr) return refused();
  slot->kind = Slot::Kind::kWrite;
  slot->address = address;
  slot->length = request.data.size();
  slot->length_dw = request.length_dw;
  slot->first_be = request.first_be;
  slot->last_be = request.last_be;
  std::copy(request.data.begin(), request.data.end(), slot->data.begin());
  return begin();
}

HelpedMemory::Reach HelpedMemory::reach(std::uint64_t address, std::uint64_t length, bool writable) {
  Slot* const slot = next_slot();
  if (slot == nullptr) return Reach::kNo;
  slot->kind = Slot::Kind::kReach;
  slot->address = address;
  slot->length = length;
  slot->writable = writable ? 1 : 0;
  const auto access = begin();
  finish(*access);
  return !lost_.empty() ? Reach::kNo : static_cast<Reach>(answer_);
}

void HelpedMemory::finish(Access& access) {
  while (!access.done) take_answer();
}

/// That of the oldest.
void HelpedMemory::take_answer() {
  if (!wait()) return;
  const Slot& slot = helper_->channel().slot(answered_ - 1);
  ++answered_;
  answer_ = slot.answer;
  const auto access = std::move(under_way_.front());
  under_way_.pop_front();
  access->done = true;
  access->good = slot.answer == 1;
  if (slot.kind == Slot::Kind::kRead)
    access->data.assign(slot.data.begin(), slot.data.begin() + static_cast<std::ptrdiff_t>(slot.length));
  if (slot.ended != 0) lose("it has become another program, or ended");
}

/// For one more answer. False: it is lost, and so is all that was under way.
bool HelpedMemory::wait() {
  if (!lost_.empty()) return false;
  auto& answered = helper_->channel().answered;
  for (int i = 0; i < kLooks; ++i) {
    if (answered.count.load() != answered_) return true;
    __builtin_ia32_pause();
  }
  for (;;) {
    const std::uint64_t begin = remote::outside_monotonic_ns();
    answered.wait(answered_, kLookNs);
    if (answered.count.load() != answered_) return true;
    // A helper that waits for a processor is not held up by the process.
    const bool given_up = helper_->blocked() && !patient(remote::outside_monotonic_ns() - begin);
    if (!given_up && !helper_->ended()) continue;
    lose("its memory does not answer");
    return false;
  }
}

bool HelpedMemory::patient(std::uint64_t blocked_ns) {
  const std::uint64_t now = remote::outside_monotonic_ns();
  waited_ns_ -= std::min(waited_ns_, (now - std::exchange(since_ns_, now)) / kRegained);
  waited_ns_ += blocked_ns;
  return waited_ns_ < kPatienceNs;
}

void HelpedMemory::lose(const std::string& why) {
  lost_ = why;
  helper_->end();
  for (const auto& access : std::exchange(under_way_, {})) access->done = true;
}

}  // namespace rnic::testbench
