#include "testbench/guest/shared_objects.hpp"

#include <span>

namespace rnic::testbench {
namespace {

using hw::AdminOpcode;

template <typename Map>
typename Map::mapped_type* entry_of(Map& map, std::uint32_t number) {
  const auto found = map.find(number);
  return found == map.end() ? nullptr : &found->second;
}

template <typename Body>
Body body_of(const hw::AdminCommand& command) {
  return Body::decode(std::span<const std::uint8_t, Body::kBytes>(command.body));
}

/// The ring that a command hands over for the device to write; nothing: none.
std::optional<std::pair<std::uint64_t, unsigned>> written_ring(const hw::AdminCommand& command) {
  switch (static_cast<AdminOpcode>(command.opcode)) {
    case AdminOpcode::kCreateEq: {
      const auto body = body_of<hw::AdminCreateEq>(command);
      if (body.log_depth > hw::kMaxLogEqDepth) return {};
      return std::pair{body.base, unsigned{body.log_depth}};
    }
    case AdminOpcode::kCreateCq: {
      const auto body = body_of<hw::AdminCreateCq>(command);
      if (body.log_depth > hw::kMaxLogCqDepth) return {};
      return std::pair{body.base, unsigned{body.log_depth}};
    }
    case AdminOpcode::kResizeCq: {
      const auto body = body_of<hw::AdminResizeCq>(command);
      if (body.log_depth > hw::kMaxLogCqDepth) return {};
      return std::pair{body.base, unsigned{body.log_depth}};
    }
    default: return {};
  }
}

}  // namespace

SharedQp* SharedObjects::qp(std::uint32_t qpn) { return entry_of(qps_, qpn); }
SharedCq* SharedObjects::cq(std::uint32_t cqn) { return entry_of(cqs_, cqn); }
EntryQueue* SharedObjects::eq(std::uint32_t eqn) { return entry_of(eqs_, eqn); }
SharedSrq* SharedObjects::srq(std::uint32_t srqn) { return entry_of(srqs_, srqn); }

void SharedObjects::clear() {
  ranges_.clear();
  qps_.clear();
  cqs_.clear();
  eqs_.clear();
  srqs_.clear();
  creations_.clear();
  not_zeroed_.clear();
}

void SharedObjects::place(std::uint64_t base, std::uint64_t bytes, SharedKind kind, std::uint32_t number) {
  ranges_[base] = {bytes, kind, number};
}

void SharedObjects::forget_place(std::uint64_t base, SharedKind kind, std::uint32_t number) {
  const auto found = ranges_.find(base);
  if (found != ranges_.end() && found->second.kind == kind && found->second.number == number) ranges_.erase(found);
}

std::optional<SharedPlace> SharedObjects::find(std::uint64_t address) const {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return {};
  const auto& [base, range] = *--next;
  if (address - base >= range.bytes) return {};
  return SharedPlace{range.kind, range.number, address - base};
}

bool SharedObjects::begin(const hw::AdminCommand& command) {
  const auto opcode = static_cast<AdminOpcode>(command.opcode);
  switch (opcode) {
    case AdminOpcode::kCreateEq:
    case AdminOpcode::kCreateCq:
    case AdminOpcode::kCreateSrq:
    case AdminOpcode::kCreateQp: creations_.insert({opcode, command.number}); break;
    default: break;
  }
  const auto ring = written_ring(command);
  if (!ring) return true;
  const bool zeroed = is_zero(memory_, ring->first, WrittenRing::kEntryBytes << ring->second);
  if (!zeroed) not_zeroed_.insert(ring->first);
  if (SharedCq* const queue = cq(command.number); opcode == AdminOpcode::kResizeCq && queue != nullptr) {
    // Entries may come there before the answer does.
    queue->next.emplace(ring->first, ring->second, queue->entries.producer, zeroed);
    place(ring->first, queue->next->bytes(), SharedKind::kCompletions, command.number);
  }
  return zeroed;
}

void SharedObjects::complete(const hw::AdminCommand& command, const hw::AdminCompletion& completion) {
  const auto opcode = static_cast<AdminOpcode>(command.opcode);
  const std::uint32_t number = command.number;
  const bool done = completion.status == static_cast<std::uint8_t>(hw::AdminStatus::kSuccess);
  creations_.erase({opcode, number});
  if (opcode == AdminOpcode::kResizeCq)
    return resize_cq(
        number, done,
        hw::AdminQueueState::decode(std::span<const std::uint8_t, hw::AdminQueueState::kBytes>(completion.result)));
  if (!done) return;
  switch (opcode) {
    case AdminOpcode::kCreateEq: {
      const auto body = body_of<hw::AdminCreateEq>(command);
      EntryQueue queue{WrittenRing(body.base, body.log_depth, 0, not_zeroed_.erase(body.base) == 0), 0, 0};
      place(body.base, queue.ring.bytes(), SharedKind::kEvents, number);
      eqs_.insert_or_assign(number, std::move(queue));
      return;
    }
    case AdminOpcode::kDestroyEq:
      if (const EntryQueue* const queue = eq(number)) forget_place(queue->ring.base(), SharedKind::kEvents, number);
      eqs_.erase(number);
      return;
    case AdminOpcode::kCreateCq: return create_cq(number, body_of<hw::AdminCreateCq>(command));
    case AdminOpcode::kDestroyCq:
      if (const SharedCq* const queue = cq(number))
        forget_place(queue->entries.ring.base(), SharedKind::kCompletions, number);
      cqs_.erase(number);
      return;
    case AdminOpcode::kCreateQp: return create_qp(number, body_of<hw::AdminCreateQp>(command));
    case AdminOpcode::kDestroyQp: return destroy_qp(number);
    case AdminOpcode::kModifyQp: return modify_qp(number, body_of<hw::AdminModifyQp>(command));
    case AdminOpcode::kCreateSrq: return create_srq(number, body_of<hw::AdminCreateSrq>(command));
    case AdminOpcode::kModifySrq: return modify_srq(number, body_of<hw::AdminModifySrq>(command));
    case AdminOpcode::kDestroySrq:
      if (const SharedSrq* const queue = srq(number))
        forget_place(queue->ring.base(), SharedKind::kSharedReceives, number);
      srqs_.erase(number);
      return;
    default: return;
  }
}

void SharedObjects::create_cq(std::uint32_t cqn, const hw::AdminCreateCq& body) {
  WrittenRing ring(body.base, body.log_depth, 0, not_zeroed_.erase(body.base) == 0);
  place(body.base, ring.bytes(), SharedKind::kCompletions, cqn);
  cqs_.insert_or_assign(cqn, SharedCq{body.uar, {std::move(ring), 0, 0}, {}});
}

/// What is in the ring before is read there, and not written any more.
void SharedObjects::resize_cq(std::uint32_t cqn, bool done, const hw::AdminQueueState& state) {
  SharedCq* const queue = cq(cqn);
  if (queue == nullptr || !queue->next) return;
  const std::uint64_t before = done ? queue->entries.ring.base() : queue->next->base();
  if (done) {
    // The answer says where it begins: entries that came meanwhile had nothing to be compared with.
    const WrittenRing& next = *queue->next;
    unsigned log_depth = 0;
    while (std::uint32_t{1} << log_depth < next.depth()) ++log_depth;
    queue->entries.ring =
        WrittenRing(next.base(), log_depth, state.producer_index, not_zeroed_.erase(next.base()) == 0);
  }
  queue->next.reset();
  forget_place(before, SharedKind::kCompletions, cqn);
}

void SharedObjects::create_qp(std::uint32_t qpn, const hw::AdminCreateQp& body) {
  SharedQp qp{body.uar,
              PostedRing(body.sq_base, body.sq_log_depth, body.sq_log_stride),
              PostedRing(body.rq_base, body.rq_log_depth, body.rq_log_stride),
              body.use_srq != 0,
              body.srqn,
              body.retired_address};
  place(body.sq_base, qp.send.bytes(), SharedKind::kSends, qpn);
  if (!qp.srq) place(body.rq_base, qp.receive.bytes(), SharedKind::kReceives, qpn);
  place(body.retired_address, hw::RetiredRecord::kBytes, SharedKind::kRecord, qpn);
  qps_.insert_or_assign(qpn, std::move(qp));
}

void SharedObjects::destroy_qp(std::uint32_t qpn) {
  const SharedQp* const one = qp(qpn);
  if (one == nullptr) return;
  forget_place(one->send.base(), SharedKind::kSends, qpn);
  forget_place(one->receive.base(), SharedKind::kReceives, qpn);
  forget_place(one->record, SharedKind::kRecord, qpn);
  qps_.erase(qpn);
}

void SharedObjects::modify_qp(std::uint32_t qpn, const hw::AdminModifyQp& body) {
  SharedQp* const one = qp(qpn);
  if (one == nullptr || body.next_state != static_cast<std::uint8_t>(hw::QpState::kReset)) return;
  one->send.restart();
  one->receive.restart();
}

void SharedObjects::create_srq(std::uint32_t srqn, const hw::AdminCreateSrq& body) {
  SharedSrq srq{body.uar, PostedRing(body.base, body.log_depth, body.log_stride), {}};
  place(body.base, srq.ring.bytes(), SharedKind::kSharedReceives, srqn);
  srqs_.insert_or_assign(srqn, std::move(srq));
}

void SharedObjects::modify_srq(std::uint32_t srqn, const hw::AdminModifySrq& body) {
  SharedSrq* const one = srq(srqn);
  if (one == nullptr || body.set_ring == 0) return;
  forget_place(one->ring.base(), SharedKind::kSharedReceives, srqn);
  one->ring.move(memory_, body.base, body.log_depth);
  place(body.base, one->ring.bytes(), SharedKind::kSharedReceives, srqn);
}

}  // namespace rnic::testbench
