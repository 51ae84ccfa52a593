#include "model/reference/queues.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

constexpr std::size_t kEntryBytes = 64;

Bytes encode(const Completion& c, Time now, bool phase) {
  Bytes bytes(kEntryBytes);
  put_field(bytes, 0, 8, static_cast<std::uint8_t>(c.status));
  put_field(bytes, 8, 8, c.opcode);
  put_field(bytes, 16, 16, c.wqe_index);
  put_field(bytes, 32, 24, c.qpn);
  put_field(bytes, 56, 1, c.is_receive);
  put_field(bytes, 57, 1, c.solicited);
  put_field(bytes, 58, 1, c.with_imm);
  put_field(bytes, 59, 1, c.with_invalidate);
  put_field(bytes, 60, 1, c.grh);
  put_field(bytes, 61, 1, c.l3_ok);
  put_field(bytes, 62, 1, c.l4_ok);
  put_field(bytes, 64, 32, c.byte_count);
  put_field(bytes, 96, 32, c.immediate);
  put_field(bytes, 128, 16, c.retired_index);
  put_field(bytes, 144, 8, c.syndrome);
  put_field(bytes, 152, 24, c.source_qpn);
  put_field(bytes, 192, 64, now / kCycle);
  put_field(bytes, 480, 16, c.tag.value_or(0));
  put_field(bytes, 496, 1, c.tag.has_value());
  put_field(bytes, 504, 1, phase);
  return bytes;
}

/// Entries from `from` to `to`.
std::uint32_t between(std::uint32_t from, std::uint32_t to) { return ahead(to, from); }

/// `to` is later than `from`, and not half round.
bool newer(std::uint32_t to, std::uint32_t from) { return to != from && between(from, to) < 0x800000; }

}  // namespace

Cq* Queues::cq(std::uint32_t number) {
  const auto it = cqs.find(number % kCqs);
  return it != cqs.end() && it->second.number == number ? &it->second : nullptr;
}

Srq* Queues::srq(std::uint32_t number) {
  const auto it = srqs.find(number % kSrqs);
  return it != srqs.end() && it->second.number == number ? &it->second : nullptr;
}

void Queues::complete(std::uint32_t cqn, const Completion& completion) {
  Cq* cq = this->cq(cqn);
  if (cq == nullptr || cq->overrun) return;
  if (between(cq->consumer, cq->producer) == 1u << cq->log_depth) {
    cq->overrun = true;
    nic_.count(Count::CqOverruns);
    fire(*cq, Event::CqError);
    nic_.qps.cq_failed(cqn, completion.qpn);
    return;
  }
  const std::uint32_t position = between(cq->origin, cq->producer), depth = 1u << cq->log_depth;
  const bool phase = (position >> cq->log_depth & 1) == 0;
  const std::uint64_t address = cq->base + std::uint64_t{position % depth} * kEntryBytes;
  nic_.pcie.write(address, encode(completion, nic_.clock.now(), phase));
  cq->producer = (cq->producer + 1) & kMask24;
  if (nic_.observer != nullptr) nic_.observer->completes(*cq, address, completion);
  if (completion.solicited || completion.status != Status::Success) cq->solicited = cq->producer;
  nic_.count(Count::Cqes);
  look_at_arm(*cq);
}

/// An arm fires for entries that no event has told of, whether they were there before it or come later (11.4.2.2,
/// decisions 27).
void Queues::look_at_arm(Cq& cq) {
  const bool any = cq.arm == Arm::Any && newer(cq.producer, cq.told);
  const bool solicited = cq.arm == Arm::Solicited && newer(cq.solicited, cq.told);
  if (!any && !solicited) return;
  const bool immediate = (cq.count <= 1 && cq.period == 0) || cq.count == 1;
  if (immediate || (cq.count != 0 && between(cq.told, cq.producer) >= cq.count)) return fire(cq, Event::Completion);
  if (cq.due) return;
  cq.due = true;
  if (cq.period == 0) return;
  const std::uint64_t life = cq.life = ++lives_;
  nic_.clock.at(nic_.clock.now() + cq.period * kMicrosecond, [this, number = cq.number, life] {
    Cq* late = this->cq(number);
    if (late != nullptr && late->life == life && late->due) fire(*late, Event::Completion);
  });
}

void Queues::fire(Cq& cq, Event type) {
  cq.arm = Arm::None;
  cq.due = false;
  cq.told = cq.producer;
  event(cq.eqn, {Source::Cq, cq.number % kCqs}, {type, cq.number, 0});
}

bool Queues::cq_doorbell(std::uint32_t number, Arm arm, std::uint32_t consumer, std::uint8_t uar) {
  Cq* cq = this->cq(number);
  if (cq == nullptr || cq->uar != uar || between(cq->consumer, consumer) > between(cq->consumer, cq->producer))
    return false;
  cq->consumer = consumer;
  cq->arm = std::max(cq->arm, arm);
  look_at_arm(*cq);
  return true;
}

void Queues::moderate(Cq& cq, std::uint16_t count, std::uint16_t period) {
  cq.count = count;
  cq.period = period;
  cq.due = false;
  cq.life = ++lives_;
  look_at_arm(cq);
}

void Queues::event(std::uint8_t eqn, SourceKey source, EventEntry entry) {
  const auto it = eqs.find(eqn);
  if (it == eqs.end()) return;
  Eq& eq = it->second;
  if (eq.there.count(source) == 0) return write(eq, source, entry);
  auto& waiting = eq.waiting[source];
  const bool known = std::any_of(waiting.begin(), waiting.end(), [&](const EventEntry& other) {
    return other.type == entry.type && other.number == entry.number;
  });
  if (!known) waiting.push_back(entry);
}

void Queues::write(Eq& eq, SourceKey source, const EventEntry& entry) {
  if (between(eq.consumer, eq.producer) == 1u << eq.log_depth) {
    nic_.count(Count::EqOverruns);
    return;
  }
  Bytes bytes(kEntryBytes);
  put_field(bytes, 0, 8, static_cast<std::uint8_t>(entry.type));
  put_field(bytes, 32, 24, entry.number);
  put_field(bytes, 64, 32, entry.detail);
  put_field(bytes, 192, 64, nic_.clock.now() / kCycle);
  put_field(bytes, 504, 1, (eq.producer >> eq.log_depth & 1) == 0);
  nic_.pcie.write(eq.base + std::uint64_t{eq.producer % (1u << eq.log_depth)} * kEntryBytes, bytes);
  eq.there[source] = eq.producer;
  eq.producer = (eq.producer + 1) & kMask24;
  nic_.count(Count::Eqes);
  nic_.interrupts.owe(eq.vector);
}

bool Queues::eq_doorbell(std::uint32_t number, std::uint32_t consumer) {
  const auto it = eqs.find(number);
  if (it == eqs.end()) return false;
  Eq& eq = it->second;
  const std::uint32_t steps = between(eq.consumer, consumer);
  if (steps > between(eq.consumer, eq.producer)) return false;
  const std::uint32_t before = eq.consumer;
  eq.consumer = consumer;
  std::erase_if(eq.there, [&](const auto& entry) { return between(before, entry.second) < steps; });
  for (auto waiting = eq.waiting.begin(); waiting != eq.waiting.end();) {
    auto& [source, entries] = *waiting;
    if (eq.there.count(source) == 0 && !entries.empty()) {
      write(eq, source, entries.front());
      entries.pop_front();
    }
    waiting = entries.empty() ? eq.waiting.erase(waiting) : std::next(waiting);
  }
  return true;
}

void Queues::look_at_limit(Srq& srq) {
  if (srq.limit == 0 || static_cast<std::uint16_t>(srq.producer - srq.head) >= srq.limit) return;
  srq.limit = 0;
  event(srq.eqn, {Source::Srq, srq.number % kSrqs}, {Event::SrqLimit, srq.number, 0});
}

bool Queues::srq_doorbell(std::uint32_t number, std::uint16_t producer, std::uint8_t uar) {
  Srq* srq = this->srq(number);
  if (srq == nullptr || srq->uar != uar) return false;
  if (static_cast<std::uint16_t>(producer - srq->head) > 1u << srq->log_depth) return false;
  if (static_cast<std::uint16_t>(producer - srq->head) < static_cast<std::uint16_t>(srq->producer - srq->head))
    return false;
  srq->producer = producer;
  return true;
}

void Interrupts::owe(std::uint8_t vector) {
  if (vector < kVectors) nic_.clock.spawn(raise(vector));
}

Task<Done> Interrupts::raise(std::uint8_t vector) {
  co_await nic_.pcie.written();
  pending_ |= std::uint64_t{1} << vector;
  look();
  co_return Done{};
}

void Interrupts::look() {
  if (!nic_.settings.msix_enable) {
    pending_ = 0;  // no message is owed for what happened while it was off
    return;
  }
  if (nic_.settings.msix_mask) return;
  for (unsigned vector = 0; vector < kVectors; ++vector) {
    const std::uint64_t control = table[2 * vector + 1];
    if ((pending_ >> vector & 1) == 0 || (control >> 32 & 1) != 0) continue;
    pending_ &= ~(std::uint64_t{1} << vector);
    Bytes data;
    append_little(data, control & 0xffffffff, 4);
    nic_.pcie.write(table[2 * vector] & ~std::uint64_t{3}, data);
    nic_.count(Count::MsixMessages);
  }
}

}  // namespace rnic::reference
