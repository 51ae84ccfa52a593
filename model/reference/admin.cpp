#include "model/reference/admin.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

namespace command {
enum : std::uint8_t {
  QueryCapabilities = 0x01,
  CreateEq = 0x10,
  DestroyEq,
  QueryEq,
  CreateCq = 0x20,
  DestroyCq,
  QueryCq,
  ModifyCq,
  ResizeCq,
  CreateMr = 0x30,
  DestroyMr,
  QueryMr,
  CreateMw,
  DestroyMw,
  CreateFastMr,
  DestroyFastMr,
  CreateQp = 0x40,
  DestroyQp,
  ModifyQp,
  QueryQp,
  QueryQpCounters,
  CreateSrq = 0x50,
  DestroySrq,
  QuerySrq,
  ModifySrq,
  AttachMulticast = 0x60,
  DetachMulticast
};
}

constexpr std::size_t kCommandBytes = 128, kCompletionBytes = 64;
constexpr unsigned kMaxLogRing = 8, kMaxLogEq = 15, kMaxLogCq = 20, kMaxLogSrq = 15;

}  // namespace

Admin::Admin(Nic& nic) : nic_(nic), rung_(nic.clock) {}

/// Both indexes and the phase begin anew; what was not executed is dropped.
void Admin::configure(std::uint64_t config) {
  config_ = config & 0x1fff;
  producer_ = consumer_ = 0;
  ++ring_;
  rung_.raise();
}

void Admin::doorbell(std::uint16_t producer) {
  producer_ = producer;
  rung_.raise();
}

Task<Done> Admin::run() {
  for (;;) {
    if (producer_ == consumer_ || fatal_ || !nic_.enabled()) {
      co_await rung_.wait();
      continue;
    }
    const std::uint64_t ring = ring_;
    const unsigned log_depth = std::min<unsigned>(config_ & 15, kMaxLogRing);
    const std::uint64_t slot = consumer_ % (1u << log_depth);
    const std::uint64_t from = command_base + slot * kCommandBytes;
    auto bytes = co_await nic_.pcie.read(from, kCommandBytes);
    while (!nic_.enabled() && ring == ring_) co_await rung_.wait();
    if (ring != ring_) continue;
    if (!bytes) {
      fatal_ = true;
      nic_.queues.event(0, {Source::Device, 0}, {Event::DeviceFatal, 0, 0});
      continue;
    }
    const std::uint8_t opcode = (*bytes)[0];
    const auto number = static_cast<std::uint32_t>(little(*bytes, 4, 4));
    Bytes body(bytes->begin() + 8, bytes->end());
    const Outcome outcome = co_await execute(opcode, number, std::move(body));
    nic_.count(Count::AdminCommands);
    if (ring != ring_) continue;
    Bytes entry(kCompletionBytes);
    entry[0] = static_cast<std::uint8_t>(outcome.status);
    entry[1] = opcode;
    entry[2] = (*bytes)[2];
    entry[3] = (*bytes)[3];
    std::copy(outcome.result.begin(), outcome.result.end(), entry.begin() + 8);
    const bool phase = (consumer_ >> log_depth & 1) == 0;
    ++consumer_;
    put_field(entry, 32, 16, consumer_);
    put_field(entry, 504, 1, phase);
    nic_.pcie.write(completion_base + slot * kCompletionBytes, entry);
    if ((config_ >> 12 & 1) != 0) nic_.interrupts.owe(static_cast<std::uint8_t>(config_ >> 4));
  }
}

Task<Admin::Outcome> Admin::execute(std::uint8_t opcode, std::uint32_t number, Bytes body) {
  Outcome outcome;
  Queues& queues = nic_.queues;
  Cq* cq = queues.cq(number);
  Srq* srq = queues.srq(number);
  const auto queue_state = [&](std::uint32_t producer, std::uint8_t log_depth, std::uint32_t consumer) {
    outcome.result.assign(48, 0);
    put_field(outcome.result, 0, 24, producer);
    put_field(outcome.result, 24, 8, log_depth);
    put_field(outcome.result, 32, 24, consumer);
  };
  switch (opcode) {
    case command::QueryCapabilities: outcome.result = capabilities(); break;
    case command::CreateEq: outcome.status = create_eq(number, body); break;
    case command::DestroyEq: {
      const bool used =
          std::any_of(queues.cqs.begin(), queues.cqs.end(), [&](auto& c) { return c.second.eqn == number; }) ||
          std::any_of(queues.srqs.begin(), queues.srqs.end(), [&](auto& s) { return s.second.eqn == number; });
      if (queues.eqs.count(number) == 0)
        outcome.status = AdminStatus::BadNumber;
      else if (used)
        outcome.status = AdminStatus::InUse;
      else
        queues.eqs.erase(number);
      break;
    }
    case command::QueryEq: {
      const auto it = queues.eqs.find(number);
      if (it == queues.eqs.end())
        outcome.status = AdminStatus::BadNumber;
      else
        queue_state(it->second.producer, it->second.log_depth, it->second.consumer);
      break;
    }
    case command::CreateCq: outcome.status = create_cq(number, body); break;
    case command::DestroyCq:
      if (cq == nullptr)
        outcome.status = AdminStatus::BadNumber;
      else if (cq->users != 0)
        outcome.status = AdminStatus::InUse;
      else
        queues.cqs.erase(number % kCqs);
      break;
    case command::QueryCq:
      if (cq == nullptr) {
        outcome.status = AdminStatus::BadNumber;
        break;
      }
      queue_state(cq->producer, cq->log_depth, cq->consumer);
      put_field(outcome.result, 56, 2, static_cast<std::uint8_t>(cq->arm));
      put_field(outcome.result, 58, 1, cq->overrun);
      break;
    case command::ModifyCq:
      if (cq == nullptr)
        outcome.status = AdminStatus::BadNumber;
      else
        queues.moderate(*cq, static_cast<std::uint16_t>(little(body, 0, 2)),
                        static_cast<std::uint16_t>(little(body, 2, 2)));
      break;
    case command::ResizeCq: outcome = resize_cq(number, body); break;
    case command::CreateMr: outcome.status = create_mr(number, body); break;
    case command::DestroyMr: outcome.status = co_await nic_.memory.destroy(number, false, false); break;
    case command::QueryMr: outcome = query_mr(number); break;
    case command::CreateMw: {
      Key key;
      key.type = static_cast<MptType>(body[3]);
      key.pd = static_cast<std::uint32_t>(little(body, 0, 3));
      outcome.status = key.type == MptType::Window1 || key.type == MptType::Window2 ? nic_.memory.create(number, key)
                                                                                    : AdminStatus::BadParameter;
      break;
    }
    case command::DestroyMw: outcome.status = co_await nic_.memory.destroy(number, false, true); break;
    case command::CreateFastMr: {
      Key key;
      key.type = MptType::FastRegion;
      key.pd = static_cast<std::uint32_t>(little(body, 0, 3));
      key.remote_access = (body[3] & 1) != 0;
      key.rights.window_bind = (body[3] & 2) != 0;
      key.max_pages = static_cast<std::uint32_t>(little(body, 4, 4));
      const std::uint64_t first_line = little(body, 8, 2), lines = little(body, 10, 1);
      key.inline_pages = lines == 0 ? 0 : static_cast<std::uint32_t>(8 * lines - 6);
      const bool good = key.max_pages != 0 && key.max_pages <= kMaxFastPages && lines <= kMaxRegionLines &&
                        first_line + lines <= kListLines;
      outcome.status = good ? nic_.memory.create(number, key) : AdminStatus::BadParameter;
      break;
    }
    case command::DestroyFastMr: outcome.status = co_await nic_.memory.destroy(number, true, false); break;
    case command::CreateQp: outcome.status = nic_.qps.create(number, body); break;
    case command::DestroyQp: outcome.status = co_await nic_.qps.destroy(number); break;
    case command::ModifyQp: outcome.status = co_await nic_.qps.modify(number, std::move(body)); break;
    case command::QueryQp: {
      const QpPtr qp = nic_.qps.find(number);
      if (qp)
        outcome.result = nic_.qps.state(*qp);
      else
        outcome.status = AdminStatus::BadNumber;
      break;
    }
    case command::QueryQpCounters: outcome = query_counters(number, body); break;
    case command::CreateSrq: outcome.status = create_srq(number, body); break;
    case command::DestroySrq:
      if (srq == nullptr)
        outcome.status = AdminStatus::BadNumber;
      else if (srq->users != 0)
        outcome.status = AdminStatus::InUse;
      else
        queues.srqs.erase(number % kSrqs);
      break;
    case command::QuerySrq:
      if (srq == nullptr) {
        outcome.status = AdminStatus::BadNumber;
        break;
      }
      outcome.result.assign(48, 0);
      put_field(outcome.result, 0, 16, srq->producer);
      put_field(outcome.result, 16, 16, srq->head);
      put_field(outcome.result, 32, 16, srq->limit);
      put_field(outcome.result, 48, 8, srq->log_depth);
      put_field(outcome.result, 56, 1, srq->error);
      break;
    case command::ModifySrq: outcome.status = modify_srq(number, body); break;
    case command::AttachMulticast: outcome.status = nic_.datagrams.attach(address_at(body, 0), number); break;
    case command::DetachMulticast: outcome.status = nic_.datagrams.detach(address_at(body, 0), number); break;
    default: outcome.status = AdminStatus::BadOpcode;
  }
  co_return outcome;
}

Bytes Admin::capabilities() const {
  Bytes result;
  for (const unsigned byte : {8u, 8u, 5u, kLogKeys, 15u, kMaxLogCq, kMaxLogEq, kMaxSge}) append_little(result, byte, 1);
  append_little(result, kMaxInline, 2);
  append_little(result, kMaxReads, 1);
  append_little(result, 5, 1);
  append_little(result, kUars - 1, 2);  // page 0 is none
  append_little(result, kVectors, 2);
  append_little(result, kMaxMessage, 4);
  append_little(result, 250, 2);
  append_little(result, kMaxFastPages, 2);
  append_little(result, kLogKeys, 1);
  append_little(result, 3, 1);  // windows of type 1 and of type 2B
  append_little(result, 8, 1);
  append_little(result, kMaxLogSrq, 1);
  append_little(result, kGroups, 2);
  append_little(result, kListLines, 2);
  result.resize(48);
  return result;
}

AdminStatus Admin::create_eq(std::uint32_t number, const Bytes& body) {
  Eq eq;
  eq.base = little(body, 0, 8);
  eq.log_depth = body[8];
  eq.vector = body[9];
  if (number >= kEqs) return AdminStatus::BadNumber;
  if (eq.base % 4096 != 0 || eq.log_depth > kMaxLogEq || eq.vector >= kVectors) return AdminStatus::BadParameter;
  return nic_.queues.eqs.emplace(number, eq).second ? AdminStatus::Success : AdminStatus::Exists;
}

AdminStatus Admin::create_cq(std::uint32_t number, const Bytes& body) {
  Cq cq;
  cq.number = number;
  cq.base = little(body, 0, 8);
  cq.log_depth = body[8];
  cq.eqn = body[9];
  cq.uar = body[10];
  if (number > kMask24) return AdminStatus::BadNumber;
  if (cq.base % 4096 != 0 || cq.log_depth > kMaxLogCq || cq.uar == 0 || cq.uar >= kUars)
    return AdminStatus::BadParameter;
  if (nic_.queues.eqs.count(cq.eqn) == 0) return AdminStatus::BadNumber;
  return nic_.queues.cqs.emplace(number % kCqs, cq).second ? AdminStatus::Success : AdminStatus::Exists;
}

/// The next entry goes to slot 0 of the new ring, with phase 1 (11.2.8.4).
Admin::Outcome Admin::resize_cq(std::uint32_t number, const Bytes& body) {
  Cq* cq = nic_.queues.cq(number);
  const std::uint64_t base = little(body, 0, 8);
  const std::uint8_t log_depth = body[8];
  if (cq == nullptr) return {AdminStatus::BadNumber, {}};
  if (base % 4096 != 0 || log_depth > kMaxLogCq) return {AdminStatus::BadParameter, {}};
  if (cq->overrun) return {AdminStatus::BadState, {}};
  if (ahead(cq->producer, cq->consumer) > 1u << log_depth) return {AdminStatus::TooSmall, {}};
  cq->base = base;
  cq->log_depth = log_depth;
  cq->origin = cq->producer;
  Outcome outcome;
  outcome.result.assign(48, 0);
  put_field(outcome.result, 0, 24, cq->producer);
  put_field(outcome.result, 24, 8, log_depth);
  put_field(outcome.result, 32, 24, cq->consumer);
  put_field(outcome.result, 56, 2, static_cast<std::uint8_t>(cq->arm));
  return outcome;
}

AdminStatus Admin::create_srq(std::uint32_t number, const Bytes& body) {
  Srq srq;
  srq.number = number;
  srq.base = little(body, 0, 8);
  srq.pd = static_cast<std::uint32_t>(little(body, 8, 3));
  srq.log_depth = body[11];
  srq.log_stride = body[12];
  srq.eqn = body[13];
  srq.uar = body[14];
  srq.limit = static_cast<std::uint16_t>(little(body, 16, 2));
  if (number > kMask24) return AdminStatus::BadNumber;
  if (srq.base % 4096 != 0 || srq.log_depth > kMaxLogSrq || srq.log_stride < 5 || srq.log_stride > 9 || srq.uar == 0 ||
      srq.uar >= kUars)
    return AdminStatus::BadParameter;
  if (nic_.queues.eqs.count(srq.eqn) == 0) return AdminStatus::BadNumber;
  const auto [it, is_new] = nic_.queues.srqs.emplace(number % kSrqs, srq);
  if (is_new) nic_.queues.look_at_limit(it->second);
  return is_new ? AdminStatus::Success : AdminStatus::Exists;
}

AdminStatus Admin::modify_srq(std::uint32_t number, const Bytes& body) {
  Srq* srq = nic_.queues.srq(number);
  if (srq == nullptr) return AdminStatus::BadNumber;
  const bool set_limit = (body[0] & 1) != 0, set_ring = (body[0] & 2) != 0;
  const std::uint64_t base = little(body, 8, 8);
  const unsigned log_depth = body[4];
  if (set_ring && (base % 4096 != 0 || log_depth > kMaxLogSrq ||
                   static_cast<std::uint16_t>(srq->producer - srq->head) > 1u << log_depth))
    return AdminStatus::BadParameter;
  if (set_ring) {
    srq->base = base;
    srq->log_depth = static_cast<std::uint8_t>(log_depth);
  }
  if (set_limit) {
    srq->limit = static_cast<std::uint16_t>(little(body, 2, 2));
    nic_.queues.look_at_limit(*srq);
  }
  return AdminStatus::Success;
}

AdminStatus Admin::create_mr(std::uint32_t number, const Bytes& body) {
  Key key;
  key.va = little(body, 0, 8);
  key.length = little(body, 8, 8);
  key.page_list = little(body, 16, 8);
  key.pd = static_cast<std::uint32_t>(little(body, 24, 3));
  key.log_page = body[27];
  const std::uint8_t flags = body[28];
  key.rights = {(flags & 1) != 0, (flags & 2) != 0,  (flags & 4) != 0,
                (flags & 8) != 0, (flags & 16) != 0, (flags & 32) != 0};
  key.valid = true;
  const bool writes = key.rights.remote_write || key.rights.remote_atomic;
  if (key.length == 0 || key.length > std::uint64_t{1} << 47 || key.page_list % 64 != 0 || key.log_page < 12 ||
      key.log_page > 30 || key.va + key.length - 1 < key.va || (writes && !key.rights.local_write))
    return AdminStatus::BadParameter;
  return nic_.memory.create(number, std::move(key));
}

Admin::Outcome Admin::query_mr(std::uint32_t number) {
  const Key* key = nic_.memory.find(number >> 8);
  if (key == nullptr) return {AdminStatus::BadNumber, {}};
  if (key->type == MptType::Region && key->tag != (number & 0xff)) return {AdminStatus::BadNumber, {}};
  Bytes r(48);
  put_field(r, 0, 64, key->va);
  put_field(r, 64, 64, key->length);
  put_field(r, 128, 24, key->pd);
  put_field(r, 152, 8, key->log_page);
  const Rights& rights = key->rights;
  unsigned bit = 160;
  for (const bool right : {rights.local_write, rights.remote_read, rights.remote_write, rights.remote_atomic,
                           rights.window_bind, key->remote_access, key->valid, rights.read_sink})
    put_field(r, bit++, 1, right);
  put_field(r, 168, 8, static_cast<std::uint8_t>(key->type));
  put_field(r, 176, 8, key->tag);
  put_field(r, 184, 8, key->bound_qp);
  put_field(r, 192, 16, key->bound_windows);
  put_field(r, 208, 16, key->max_pages);
  put_field(r, 224, 24, key->mr_index);
  return {AdminStatus::Success, r};
}

Admin::Outcome Admin::query_counters(std::uint32_t number, const Bytes& body) {
  const QpPtr qp = nic_.qps.find(number);
  if (!qp) return {AdminStatus::BadNumber, {}};
  const unsigned first = (body[0] & 1) != 0 ? kQpCounters / 2 : 0;
  Bytes result;
  for (unsigned i = first; i < first + kQpCounters / 2; ++i) {
    append_little(result, qp->counters[i], 4);
    if ((body[0] & 2) != 0) qp->counters[i] = 0;
  }
  return {AdminStatus::Success, result};
}

}  // namespace rnic::reference
