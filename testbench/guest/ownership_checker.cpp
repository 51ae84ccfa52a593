#include "testbench/guest/ownership_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace rnic::testbench {
namespace {

constexpr std::size_t kDword = 4, kWord = 8;
constexpr std::uint32_t kIndexMask = WrittenRing::kIndexMask;
constexpr unsigned kMostLogAdmin = 8, kLogCommand = 7;
constexpr const char *kAdminQueue = "the admin queue", *kAdminCompletions = "the ring of admin completions",
                     *kSendQueue = "the send queue of queue pair", *kReceiveQueue = "the receive queue of queue pair",
                     *kSharedQueue = "shared receive queue", *kCompletionQueue = "completion queue",
                     *kEventQueue = "event queue";

std::uint64_t little(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), kWord); ++i) value |= std::uint64_t{bytes[i]} << 8 * i;
  return value;
}

template <typename Structure>
Structure decoded(const std::uint8_t* at) {
  return Structure::decode(std::span<const std::uint8_t, Structure::kBytes>(at, Structure::kBytes));
}

bool is_whole(const model::DmaRequest& request) {
  return request.data.size() == WrittenRing::kEntryBytes && request.first_be == 0xF && request.last_be == 0xF;
}

}  // namespace

OwnershipChecker::OwnershipChecker(const model::Iommu& memory, Tell tell)
    : memory_(memory), tell_(std::move(tell)), objects_(memory) {}

void OwnershipChecker::begin() { figures_ = {}; }

void OwnershipChecker::reset() {
  late_.bring();
  enabled_ = false;
  admin_ = {};
  objects_.clear();
  windows_.clear();
}

std::string OwnershipChecker::RingName::text() const { return number ? fmt::format("{} {:#x}", what, *number) : what; }

void OwnershipChecker::tell(OwnershipRule rule, const std::string& what) {
  if (figures_.broken.at(static_cast<std::size_t>(rule))++ != 0 || !tell_) return;
  const OwnershipRuleText& text = text_of(rule);
  tell_(fmt::format("the driver breaks {}: {}; {} (docs/host_interface.md, {})", text.name, what, text.says,
                    text.section));
}

// ---- What the driver writes to the device ----

void OwnershipChecker::request(const model::HostRequest& request) {
  if (request.kind != model::TlpKind::kMemoryWrite || request.poisoned) return;
  if (request.address < hw::kUarPageBytes) return write_register(request);
  const bool whole = request.data.size() >= kWord && request.first_be == 0xF && request.last_be == 0xF;
  if (!enabled_ || !whole) return;
  const auto uar = static_cast<std::uint8_t>(request.address / hw::kUarPageBytes);
  const std::uint64_t offset = request.address % hw::kUarPageBytes;
  if (offset >= hw::uar::kWqeWindow && offset < hw::uar::kWqeWindow + hw::kUarWqeWindowBytes)
    return window(uar, offset - hw::uar::kWqeWindow, request.data);
  if (request.data.size() == kWord && offset % kWord == 0) doorbell(uar, offset, little(request.data));
}

void OwnershipChecker::write_register(const model::HostRequest& request) {
  const auto merge = [&](std::uint64_t& value, std::uint64_t offset) {
    bool touched = false;
    for (std::size_t i = 0; i < request.data.size(); ++i) {
      const std::uint64_t at = request.address + i;
      if (at < offset || at >= offset + kWord ||
          !model::byte_enabled(i, request.length_dw, request.first_be, request.last_be))
        continue;
      const std::uint64_t shift = 8 * (at - offset);
      value = (value & ~(std::uint64_t{0xFF} << shift)) | std::uint64_t{request.data[i]} << shift;
      touched = true;
    }
    return touched;
  };
  std::uint64_t control = enabled_ ? 1 : 0;
  if (merge(control, hw::reg::kDeviceControl)) enabled_ = (control & 1) != 0;
  merge(admin_.command_base, hw::reg::kAdminCommandBase);
  merge(admin_.completion_base, hw::reg::kAdminCompletionBase);
  if (merge(admin_.config, hw::reg::kAdminConfig)) configure_admin();
  if (merge(admin_.doorbell, hw::reg::kAdminDoorbell) && enabled_)
    admin_doorbell(hw::RegAdminDoorbell::from_word(admin_.doorbell).producer_index);
}

void OwnershipChecker::configure_admin() {
  const unsigned log_depth = std::min<unsigned>(hw::RegAdminConfig::from_word(admin_.config).log_depth, kMostLogAdmin);
  const bool zeroed = is_zero(memory_, admin_.completion_base, WrittenRing::kEntryBytes << log_depth);
  admin_.commands.emplace(admin_.command_base, log_depth, kLogCommand);
  admin_.completions.emplace(EntryQueue{WrittenRing(admin_.completion_base, log_depth, 0, zeroed), 0, 0});
  admin_.handed_over = 0;
  admin_.read.clear();
  admin_.doorbell = 0;
  if (!zeroed)
    tell(OwnershipRule::kRingNotZeroed,
         fmt::format("{} at {:#x} is not zero", kAdminCompletions, admin_.completion_base));
}

void OwnershipChecker::admin_doorbell(std::uint16_t producer) {
  if (!admin_.commands) return;
  PostedRing& ring = *admin_.commands;
  const std::uint16_t before = ring.producer();
  post({{kAdminQueue}, ring, {}}, producer);
  // A command's slot in the other ring is the device's with it; of the first pass it was zeroed.
  for (std::uint16_t index = before; index != ring.producer(); ++index, ++admin_.handed_over) {
    if (admin_.handed_over < ring.depth()) continue;
    const auto last_pass = static_cast<std::uint32_t>(admin_.handed_over - ring.depth());
    admin_.completions->ring.give_back(memory_, last_pass & kIndexMask);
  }
}

void OwnershipChecker::doorbell(std::uint8_t uar, std::uint64_t offset, std::uint64_t value) {
  switch (offset) {
    case hw::uar::kSendDoorbell: {
      const auto ring = hw::SendDoorbell::from_word(value);
      return send_doorbell(uar, ring.qpn, ring.producer_index);
    }
    case hw::uar::kReceiveDoorbell: {
      const auto ring = hw::ReceiveDoorbell::from_word(value);
      return receive_doorbell(uar, ring.qpn, ring.producer_index);
    }
    case hw::uar::kSrqDoorbell: {
      const auto ring = hw::SrqDoorbell::from_word(value);
      return srq_doorbell(uar, ring.srqn, ring.producer_index);
    }
    case hw::uar::kCqDoorbell: {
      const auto ring = hw::CqDoorbell::from_word(value);
      return cq_doorbell(uar, ring.cqn, ring.consumer_index);
    }
    case hw::uar::kEqDoorbell: {
      const auto ring = hw::EqDoorbell::from_word(value);
      if (uar == hw::kKernelUar) eq_doorbell(ring.eqn, ring.consumer_index);
      return;
    }
    default: return;
  }
}

/// In ascending order the last piece posts; in another, that with the first bytes.
void OwnershipChecker::window(std::uint8_t uar, std::size_t offset, const std::vector<std::uint8_t>& piece) {
  Window& window = windows_[uar];
  const auto posts = [&] {
    window.begun = false;
    send_doorbell(uar, window.qpn, static_cast<std::uint16_t>(window.index + 1));
  };
  if (offset == 0) {
    if (std::exchange(window.begun, true)) posts();
    std::array<std::uint8_t, hw::WqeControl::kBytes> head{};
    std::copy_n(piece.begin(), kWord, head.begin());
    const auto control = decoded<hw::WqeControl>(head.data());
    constexpr std::size_t kSegment = 16;
    const std::size_t size = control.size * kSegment, awaited = size <= hw::kUarWqeWindowBytes ? size : 0;
    window = {true, window.disordered, piece.size(), awaited, control.qpn, control.wqe_index};
    if (std::exchange(window.disordered, false) || window.next >= window.size) posts();
  } else if (window.begun && offset == window.next) {
    window.next += piece.size();
    if (window.next >= window.size) posts();
  } else if (window.begun) {
    posts();
  } else {
    window.disordered = true;
  }
}

void OwnershipChecker::unknown(hw::AdminOpcode creation, const char* what, std::uint32_t number) {
  if (objects_.under_way(creation, number))
    tell(OwnershipRule::kObjectNotThere,
         fmt::format("a doorbell of {} {:#x}, whose creation has no completion yet", what, number));
}

void OwnershipChecker::send_doorbell(std::uint8_t uar, std::uint32_t qpn, std::uint16_t producer) {
  SharedQp* const qp = objects_.qp(qpn);
  if (qp == nullptr) return unknown(hw::AdminOpcode::kCreateQp, "queue pair", qpn);
  if (qp->uar != uar) return;
  post({{kSendQueue, qpn},
        qp->send,
        [qpn](std::uint16_t index, const std::uint8_t* slot) {
          const auto control = decoded<hw::WqeControl>(slot);
          return control.wqe_index == index && control.qpn == qpn;
        }},
       producer);
}

void OwnershipChecker::receive_doorbell(std::uint8_t uar, std::uint32_t qpn, std::uint16_t producer) {
  SharedQp* const qp = objects_.qp(qpn);
  if (qp == nullptr) return unknown(hw::AdminOpcode::kCreateQp, "queue pair", qpn);
  if (qp->uar != uar || qp->srq) return;
  post({{kReceiveQueue, qpn},
        qp->receive,
        [](std::uint16_t index, const std::uint8_t* slot) { return decoded<hw::WqeReceive>(slot).wqe_index == index; }},
       producer);
}

void OwnershipChecker::srq_doorbell(std::uint8_t uar, std::uint32_t srqn, std::uint16_t producer) {
  SharedSrq* const srq = objects_.srq(srqn);
  if (srq == nullptr) return unknown(hw::AdminOpcode::kCreateSrq, kSharedQueue, srqn);
  if (srq->uar != uar) return;
  post({{kSharedQueue, srqn},
        srq->ring,
        [srq](std::uint16_t index, const std::uint8_t* slot) {
          const auto wqe = decoded<hw::WqeReceive>(slot);
          srq->tags[wqe.tag] = index;
          return wqe.wqe_index == index;
        }},
       producer);
}

void OwnershipChecker::cq_doorbell(std::uint8_t uar, std::uint32_t cqn, std::uint32_t consumer) {
  SharedCq* const cq = objects_.cq(cqn);
  if (cq == nullptr) return unknown(hw::AdminOpcode::kCreateCq, kCompletionQueue, cqn);
  if (cq->uar == uar) consume({kCompletionQueue, cqn}, cq->entries, consumer);
}

void OwnershipChecker::eq_doorbell(std::uint32_t eqn, std::uint32_t consumer) {
  EntryQueue* const eq = objects_.eq(eqn);
  if (eq == nullptr) return unknown(hw::AdminOpcode::kCreateEq, kEventQueue, eqn);
  consume({kEventQueue, eqn}, *eq, consumer);
}

void OwnershipChecker::post(const Posting& posting, std::uint16_t producer) {
  ++figures_.doorbells;
  PostedRing& ring = posting.ring;
  switch (ring.judge(producer)) {
    case PostedRing::Doorbell::kSame: return;
    case PostedRing::Doorbell::kBack:
      return tell(OwnershipRule::kProducerBack, fmt::format("{}: the producer index goes from {:#x} to {:#x}",
                                                            posting.name.text(), ring.producer(), producer));
    case PostedRing::Doorbell::kOverrun: return overrun(posting, producer);
    case PostedRing::Doorbell::kPosts: break;
  }
  while (ring.producer() != producer) {
    const std::uint16_t index = ring.producer();
    const std::uint8_t* const slot = at(ring.address(index));
    const bool in_place = slot == nullptr || !posting.in_place || posting.in_place(index, slot);
    if (!in_place)
      tell(OwnershipRule::kDoorbellBeforeWqe,
           fmt::format("{}: the doorbell comes, and WQE {:#x} is not in its slot at {:#x}", posting.name.text(), index,
                       ring.address(index)));
    ring.hand_over(memory_, in_place);
    ++figures_.slots;
  }
}

/// Of a queue that is full a slot that is the device's was given to it once more, and was written for that.
void OwnershipChecker::overrun(const Posting& posting, std::uint16_t producer) {
  PostedRing& ring = posting.ring;
  for (std::uint16_t index = ring.producer(); index != producer; ++index) {
    const auto owned = ring.owned_in(index);
    if (!owned || ring.unchanged(memory_, *owned)) continue;
    return tell(OwnershipRule::kSlotOverwritten,
                fmt::format("{}: the slot of {:#x} is written for {:#x}, and {:#x} is not done", posting.name.text(),
                            *owned, index, *owned));
  }
  tell(OwnershipRule::kRingOverrun, fmt::format("{}: {} are posted and not done, of {} slots", posting.name.text(),
                                                static_cast<std::uint16_t>(producer - ring.retired()), ring.depth()));
}

void OwnershipChecker::consume(const RingName& name, EntryQueue& queue, std::uint32_t consumer) {
  ++figures_.doorbells;
  const std::uint32_t there = (queue.producer - queue.consumer) & kIndexMask;
  const std::uint32_t taken = (consumer - queue.consumer) & kIndexMask;
  if (taken > kIndexMask / 2)
    return tell(OwnershipRule::kConsumerBack,
                fmt::format("{}: the consumer index goes from {:#x} to {:#x}", name.text(), queue.consumer, consumer));
  if (taken > there)
    return tell(OwnershipRule::kConsumerAhead,
                fmt::format("{}: the consumer index says {:#x}, and entry {:#x} is not written yet", name.text(),
                            consumer, queue.producer));
  for (; queue.consumer != consumer; queue.consumer = (queue.consumer + 1) & kIndexMask) {
    const std::uint64_t address = queue.ring.address(queue.consumer);
    if (queue.ring.has(queue.consumer) && late_.waits(at(address))) {
      tell(OwnershipRule::kEntryReadUnordered,
           fmt::format("{}: entry {:#x} is given back, and behind its phase the rest of it was not waited for",
                       name.text(), queue.consumer));
      late_.bring();
    }
    queue.ring.give_back(memory_, queue.consumer);
  }
}

// ---- What the device does in memory ----

bool OwnershipChecker::read(const model::DmaRequest& request, const model::Iommu::Place& /*from*/,
                            std::vector<std::uint8_t>& data, const std::function<bool()>& memory) {
  const std::uint64_t address = request.address;
  const std::size_t bytes = std::size_t{request.length_dw} * kDword;
  if (admin_.commands && address - admin_.commands->base() < admin_.commands->bytes()) {
    read_slots({kAdminQueue}, *admin_.commands, address - admin_.commands->base(), bytes);
  } else if (const auto place = objects_.find(address)) {
    if (place->kind == SharedKind::kSends)
      read_slots({kSendQueue, place->number}, objects_.qp(place->number)->send, place->offset, bytes);
    if (place->kind == SharedKind::kReceives)
      read_slots({kReceiveQueue, place->number}, objects_.qp(place->number)->receive, place->offset, bytes);
    if (place->kind == SharedKind::kSharedReceives)
      read_slots({kSharedQueue, place->number}, objects_.srq(place->number)->ring, place->offset, bytes);
  }
  static_cast<void>(data);
  return memory();
}

/// What is read beyond what was handed over is nobody's affair.
void OwnershipChecker::read_slots(const RingName& name, PostedRing& ring, std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t first = offset / ring.stride(), last = (offset + bytes - 1) / ring.stride();
  for (std::uint64_t slot = first; slot <= last; ++slot) {
    const auto index = ring.owned_in(slot);
    if (!index) continue;
    if (!ring.unchanged(memory_, *index))
      tell(OwnershipRule::kWrittenBehindDoorbell,
           fmt::format("{}: {:#x} is not what it was when its doorbell came", name.text(), *index));
    if (admin_.commands && &ring == &*admin_.commands) read_command(*index);
  }
}

void OwnershipChecker::read_command(std::uint16_t index) {
  const std::uint8_t* const slot = at(admin_.commands->address(index));
  if (slot == nullptr || admin_.read.contains(index)) return;
  const auto command = decoded<hw::AdminCommand>(slot);
  admin_.read.emplace(index, command);
  if (!objects_.begin(command))
    tell(OwnershipRule::kRingNotZeroed, fmt::format("admin command {:#x} hands a ring over that is not zero", index));
}

bool OwnershipChecker::write(const model::DmaRequest& request, const model::Iommu::Place& to,
                             const std::function<bool()>& memory) {
  if (!write_entry(request.address, request)) return memory();
  ++figures_.entries;
  if (!late_entries_) return memory();
  late_.write(to.at, request.data.data());
  return true;
}

/// False: it is no entry.
bool OwnershipChecker::write_entry(std::uint64_t address, const model::DmaRequest& request) {
  if (admin_.completions && address - admin_.completions->ring.base() < admin_.completions->ring.bytes()) {
    if (!is_whole(request)) return false;
    write_admin_completion(request);
    return true;
  }
  const auto place = objects_.find(address);
  if (!place) return false;
  if (place->kind == SharedKind::kRecord && request.data.size() == hw::RetiredRecord::kBytes) {
    retire({kSendQueue, place->number}, objects_.qp(place->number)->send,
           decoded<hw::RetiredRecord>(request.data.data()).retired_index);
    return false;
  }
  if (!is_whole(request)) return false;
  if (place->kind == SharedKind::kCompletions) {
    write_cqe(place->number, request);
  } else if (place->kind == SharedKind::kEvents) {
    write_next({kEventQueue, place->number}, *objects_.eq(place->number), address);
  } else {
    return false;
  }
  return true;
}

void OwnershipChecker::write_next(const RingName& name, EntryQueue& queue, std::uint64_t address) {
  const std::uint32_t index = queue.producer;
  queue.producer = (queue.producer + 1) & kIndexMask;
  // Of a queue that is being resized it may be in the other ring.
  if (address == queue.ring.address(index) && !queue.ring.untouched(memory_, index))
    tell(OwnershipRule::kEntryOverwritten,
         fmt::format("{}: the slot of entry {:#x} was written since it is the device's", name.text(), index));
}

void OwnershipChecker::write_admin_completion(const model::DmaRequest& request) {
  PostedRing& commands = *admin_.commands;
  const std::uint16_t index = commands.retired();
  write_next({kAdminCompletions}, *admin_.completions, request.address);
  if (!commands.owns(index)) return;
  const auto completion = decoded<hw::AdminCompletion>(request.data.data());
  const auto known = admin_.read.find(index);
  if (known != admin_.read.end()) {
    objects_.complete(known->second, completion);
    admin_.read.erase(known);
  }
  retire({kAdminQueue}, commands, static_cast<std::uint16_t>(index + 1));
}

void OwnershipChecker::write_cqe(std::uint32_t cqn, const model::DmaRequest& request) {
  write_next({kCompletionQueue, cqn}, objects_.cq(cqn)->entries, request.address);
  const auto cqe = decoded<hw::Cqe>(request.data.data());
  SharedQp* const qp = objects_.qp(cqe.qpn);
  if (qp == nullptr) return;
  if (cqe.is_receive == 0) {
    retire({kSendQueue, cqe.qpn}, qp->send, cqe.retired_index);
  } else if (!qp->srq) {
    retire({kReceiveQueue, cqe.qpn}, qp->receive, static_cast<std::uint16_t>(cqe.wqe_index + 1));
  } else if (SharedSrq* const srq = objects_.srq(qp->srqn)) {
    retire_shared(*srq, qp->srqn, cqe.wqe_index);
  }
}

/// With a WQE all before it are free.
void OwnershipChecker::retire_shared(SharedSrq& srq, std::uint32_t srqn, std::uint16_t tag) {
  const auto index = srq.tags.find(tag);
  if (index == srq.tags.end() || !srq.ring.owns(index->second)) return;
  retire({kSharedQueue, srqn}, srq.ring, static_cast<std::uint16_t>(index->second + 1));
}

/// The driver has not been told yet: until now nobody else may have written there.
void OwnershipChecker::retire(const RingName& name, PostedRing& ring, std::uint16_t index) {
  if (!ring.owns(static_cast<std::uint16_t>(index - 1))) return;
  for (std::uint16_t one = ring.retired(); one != index; ++one) {
    if (!ring.unchanged(memory_, one))
      tell(OwnershipRule::kSlotOverwritten,
           fmt::format("{}: the slot of {:#x} was written before it was done", name.text(), one));
  }
  ring.retire_to(index);
}

model::ProcessMemory::Reach OwnershipChecker::reach(std::int32_t /*process*/, std::uint64_t /*address*/,
                                                    std::uint64_t /*length*/, bool /*writable*/,
                                                    const std::function<model::ProcessMemory::Reach()>& memory) {
  return memory();
}

}  // namespace rnic::testbench
