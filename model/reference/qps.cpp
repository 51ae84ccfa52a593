#include "model/reference/qps.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

constexpr unsigned kMaxLogDepth = 15;

bool is_stride(unsigned log, unsigned least) { return log >= least && log <= 9; }

void wake(Qp& qp) {
  qp.send_signal.raise();
  qp.request_signal.raise();
  qp.response_signal.raise();
  qp.answer_signal.raise();
}

struct Transition {
  std::uint32_t needs = 0, takes = 0;
  bool legal = false;
};

/// Attributes that a transition needs, and those that it takes besides (10.3.1, 11.2.5.2).
Transition transition(QpState from, QpState to, QpType type) {
  using namespace attr;
  const bool rc = type == QpType::Rc, ud = type == QpType::Ud;
  if (type == QpType::RawPacket) {
    constexpr std::uint32_t kAll = attr::Port | CurState | SqdNotify;
    const Transition of_ud = transition(from, to, QpType::Ud);
    return {of_ud.needs & kAll, of_ud.takes & kAll, of_ud.legal};
  }
  const std::uint32_t flags_or_key = ud ? Qkey : AccessFlags;
  if (to == QpState::Reset || to == QpState::Err) return {0, 0, true};
  if (from == QpState::Reset && to == QpState::Init) return {PkeyIndex | attr::Port | flags_or_key, 0, true};
  if (from == QpState::Init && to == QpState::Init) return {0, PkeyIndex | attr::Port | flags_or_key, true};
  if (from == QpState::Init && to == QpState::Rtr) {
    std::uint32_t needs = Av | PathMtu;
    if (!ud) needs |= DestQpn | RqPsn;
    if (rc) needs |= MaxDestRdAtomic | MinRnrTimer;
    return {needs, PkeyIndex | flags_or_key, true};
  }
  if (from == QpState::Rtr && to == QpState::Rts) {
    const std::uint32_t needs = SqPsn | (rc ? Timeout | RetryCnt | RnrRetry | MaxRdAtomic : 0u);
    return {needs, CurState | flags_or_key | (rc ? MinRnrTimer : 0u), true};
  }
  if ((from == QpState::Rts || from == QpState::Sqd) && to == QpState::Rts)
    return {0, CurState | flags_or_key | (rc ? MinRnrTimer : 0u), true};
  if (from == QpState::Sqe && to == QpState::Rts) return {0, CurState | flags_or_key, true};
  if (from == QpState::Rts && to == QpState::Sqd) return {0, SqdNotify, true};
  if (from == QpState::Sqd && to == QpState::Sqd) {
    std::uint32_t takes = PkeyIndex | (ud ? Qkey : attr::Port | Av | AccessFlags);
    if (rc) takes |= Timeout | RetryCnt | RnrRetry | MaxRdAtomic | MaxDestRdAtomic | MinRnrTimer;
    return {0, takes, true};
  }
  return {};
}

/// The two bytes of ModifyQp that ask for a VLAN tag.
std::optional<std::uint16_t> tag_of(const Bytes& body) { return requested_tag(little(body, 38, 2)); }

/// What ModifyQp carries is in range.
bool in_range(QpType type, std::uint32_t mask, const Bytes& body) {
  const bool tagged = (mask & attr::Av) != 0 && type != QpType::Ud && tag_of(body);
  if (tagged && (*tag_of(body) & kReservedVid) == kReservedVid) return false;
  const bool ipv4 = (mask & attr::Av) != 0 && type != QpType::Ud && (body[7] & 4) == 0;
  if (ipv4 && !(is_ipv4(address_at(body, 40)) && is_ipv4(address_at(body, 56)))) return false;
  if ((mask & attr::PathMtu) != 0 && (body[1] < 1 || body[1] > 5)) return false;
  if ((mask & attr::MaxDestRdAtomic) != 0 && body[2] > kMaxReads) return false;
  if ((mask & attr::MaxRdAtomic) != 0 && body[3] > kMaxReads) return false;
  if ((mask & attr::MinRnrTimer) != 0 && body[4] > 31) return false;
  if ((mask & attr::Timeout) != 0 && body[5] > 31) return false;
  if ((mask & attr::RetryCnt) != 0 && (body[6] & 15) > 7) return false;
  return (mask & attr::RnrRetry) == 0 || (body[6] >> 4) <= 7;
}

void take_attributes(Qp& qp, std::uint32_t mask, const Bytes& body) {
  QpAttributes& a = qp.a;
  const auto given = [mask](std::uint32_t bit) { return (mask & bit) != 0; };
  if (given(attr::PathMtu)) a.path_mtu = body[1];
  if (given(attr::MaxDestRdAtomic)) a.max_dest_rd_atomic = body[2];
  if (given(attr::MaxRdAtomic)) a.max_rd_atomic = body[3];
  if (given(attr::MinRnrTimer)) a.min_rnr_timer = body[4];
  if (given(attr::Timeout)) a.ack_timeout = body[5];
  if (given(attr::RetryCnt)) qp.retries = a.retry_count = body[6] & 15;
  if (given(attr::RnrRetry)) qp.rnr_retries = a.rnr_retry = body[6] >> 4;
  if (given(attr::AccessFlags)) {
    a.remote_write = (body[7] & 1) != 0;
    a.remote_read = (body[7] & 2) != 0;
    a.remote_atomic = (body[7] & 8) != 0;
  }
  if (given(attr::RqPsn)) {
    qp.rq_psn = static_cast<std::uint32_t>(little(body, 8, 3));
    qp.executed = (qp.rq_psn - 1) & kMask24;
  }
  if (given(attr::SqPsn))
    qp.next_psn = qp.send_psn = qp.una_psn = qp.sent_psn = static_cast<std::uint32_t>(little(body, 17, 3));
  // These three are written together: a command that gives one has all of them (admin_modify_qp).
  if (given(attr::PkeyIndex) || given(attr::Av) || given(attr::DestQpn)) {
    a.dest_qpn = static_cast<std::uint32_t>(little(body, 11, 3));
    a.pkey = static_cast<std::uint16_t>(little(body, 15, 2));
    Path& path = a.path;
    path.ipv6 = (body[7] & 4) != 0;
    path.traffic_class = body[20];
    path.hop_limit = body[21];
    path.source_port = static_cast<std::uint16_t>(little(body, 23, 2));
    path.flow_label = static_cast<std::uint32_t>(little(body, 25, 3) & 0xfffff);
    path.dest_mac = little(body, 32, 6);
    path.tag = tag_of(body);
    path.source = address_at(body, 40);
    path.dest = address_at(body, 56);
  }
  if (given(attr::Qkey)) a.qkey = static_cast<std::uint32_t>(little(body, 28, 4));
}

}  // namespace

QpPtr Qps::find(std::uint32_t number) const {
  const auto it = qps_.find(number % kQps);
  return it != qps_.end() && it->second->number == number ? it->second : nullptr;
}

AdminStatus Qps::create(std::uint32_t number, const Bytes& body) {
  auto qp = std::make_shared<Qp>(nic_.clock, [this](Qp& late) { nic_.requester.timed_out(late); });
  qp->number = number;
  qp->sq_base = little(body, 0, 8);
  qp->rq_base = little(body, 8, 8);
  qp->retired_address = little(body, 16, 8);
  qp->pd = static_cast<std::uint32_t>(little(body, 24, 3));
  qp->uar = body[27];
  qp->send_cqn = static_cast<std::uint32_t>(little(body, 28, 3));
  qp->receive_cqn = static_cast<std::uint32_t>(little(body, 31, 3));
  qp->sq_log_depth = body[34];
  qp->sq_log_stride = body[35];
  qp->rq_log_depth = body[36];
  qp->rq_log_stride = body[37];
  qp->fast_register = (body[38] & 1) != 0;
  qp->type = static_cast<QpType>(body[39]);
  qp->srqn = static_cast<std::uint32_t>(little(body, 40, 3));
  qp->use_srq = (body[43] & 1) != 0;
  const bool known_type = body[39] <= 3, raw = qp->type == QpType::RawPacket;
  const bool general_service = number == 1;
  if (number > kMask24) return AdminStatus::BadNumber;
  if (!known_type || number == 0 || number == kMulticastQpn ||
      (general_service && (qp->type != QpType::Ud || qp->uar != 1)))
    return AdminStatus::BadParameter;
  const bool own_queue = !qp->use_srq;
  if (qp->uar == 0 || qp->uar >= kUars || qp->sq_base % 4096 != 0 || qp->retired_address % 8 != 0 ||
      qp->sq_log_depth > kMaxLogDepth || !is_stride(qp->sq_log_stride, 6) ||
      (own_queue && (qp->rq_base % 4096 != 0 || qp->rq_log_depth > kMaxLogDepth || !is_stride(qp->rq_log_stride, 5))) ||
      (qp->use_srq && (qp->type == QpType::Uc || raw)) || (raw && qp->uar != 1))
    return AdminStatus::BadParameter;
  if (qps_.count(number % kQps) != 0) return AdminStatus::Exists;
  Cq* send = nic_.queues.cq(qp->send_cqn);
  Cq* receive = nic_.queues.cq(qp->receive_cqn);
  Srq* srq = qp->use_srq ? nic_.queues.srq(qp->srqn) : nullptr;
  if (send == nullptr || receive == nullptr || (qp->use_srq && srq == nullptr)) return AdminStatus::BadNumber;
  ++send->users;
  ++receive->users;
  if (srq != nullptr) ++srq->users;
  qps_[number % kQps] = qp;
  nic_.clock.spawn(nic_.requester.send(qp));
  nic_.clock.spawn(nic_.requester.take_responses(qp));
  nic_.clock.spawn(nic_.responder.take_requests(qp));
  nic_.clock.spawn(nic_.responder.answer(qp));
  return AdminStatus::Success;
}

void Qps::release(const Qp& qp) {
  if (Cq* cq = nic_.queues.cq(qp.send_cqn)) --cq->users;
  if (Cq* cq = nic_.queues.cq(qp.receive_cqn)) --cq->users;
  if (Srq* srq = qp.use_srq ? nic_.queues.srq(qp.srqn) : nullptr) --srq->users;
}

/// Ends when no DMA for the queue pair is under way.
Task<AdminStatus> Qps::destroy(std::uint32_t number) {
  const QpPtr qp = find(number);
  if (!qp) co_return AdminStatus::BadNumber;
  if (nic_.datagrams.attached(number)) co_return AdminStatus::InUse;
  co_await reset(qp);
  qp->gone = true;
  wake(*qp);
  release(*qp);
  qps_.erase(number % kQps);
  co_return AdminStatus::Success;
}

/// To RESET: what is posted is flushed, with its entries (decisions 65); then nothing is left of this life but what was
/// created and the counters.
Task<Done> Qps::reset(QpPtr qp) {
  qp->leaving = true;
  fail(*qp);
  const auto flushed = [](const Qp& q) {
    return q.sq_retired == q.sq_producer && (q.use_srq ? !q.receive : q.rq_done == q.rq_producer);
  };
  while (qp->busy != 0 || !flushed(*qp)) co_await qp->rest_signal.wait();
  if (nic_.observer != nullptr) nic_.observer->resets(*qp);
  qp->state = QpState::Reset;
  qp->leaving = false;
  ++qp->life;
  qp->requests.clear();
  qp->answers.clear();
  qp->requests_in.clear();
  qp->responses_in.clear();
  qp->ack_timer.stop();
  nic_.memory.unbind(qp->index());
  qp->a = {};
  qp->sq_producer = qp->sq_next = qp->sq_retired = 0;
  qp->rq_producer = qp->rq_head = qp->rq_done = 0;
  qp->fetched.clear();
  qp->ssn = qp->limit_ssn = qp->msn = 0;
  qp->limited = qp->first_only = qp->rnr_wait = qp->drain_notify = false;
  qp->went_back.reset();
  qp->gap.reset();
  qp->nak_sent = qp->open = qp->broken = qp->last_wqe_told = qp->told_established = false;
  qp->message_bytes = 0;
  qp->receive.reset();
  qp->executed.reset();
  qp->atomics.clear();
  qp->atomic_order.clear();
  qp->reads_open = 0;
  co_return Done{};
}

Task<AdminStatus> Qps::modify(std::uint32_t number, Bytes body) {
  const QpPtr qp = find(number);
  if (!qp) co_return AdminStatus::BadNumber;
  const auto to = static_cast<QpState>(body[0]);
  const std::uint32_t mask = static_cast<std::uint32_t>(little(body, 72, 3) & 0x1fffff) & ~std::uint32_t{attr::State};
  if (body[0] > static_cast<std::uint8_t>(QpState::Err)) co_return AdminStatus::BadParameter;
  const Transition rule = transition(qp->state, to, qp->type);
  if (!rule.legal || (mask & ~(rule.needs | rule.takes)) != 0) co_return AdminStatus::BadState;
  if ((mask & attr::CurState) != 0 && body[75] != static_cast<std::uint8_t>(qp->state)) co_return AdminStatus::BadState;
  if ((rule.needs & ~mask) != 0 || !in_range(qp->type, mask, body)) co_return AdminStatus::BadParameter;
  if (qp->state == QpState::Sqe && to == QpState::Rts && qp->sq_retired != qp->sq_producer)
    co_return AdminStatus::BadState;
  take_attributes(*qp, mask, body);
  if (to == QpState::Reset) {
    co_await reset(qp);
    co_return AdminStatus::Success;
  }
  if (to == QpState::Err) {
    fail(*qp);
    co_return AdminStatus::Success;
  }
  qp->state = to;
  if (to == QpState::Sqd && (mask & attr::SqdNotify) != 0) {
    qp->drain_notify = (body[7] & 16) != 0;
    nic_.requester.look_drained(*qp);
  }
  wake(*qp);
  co_return AdminStatus::Success;
}

/// admin_qp_state.
Bytes Qps::state(const Qp& qp) const {
  Bytes result(48);
  const auto reads = std::count_if(qp.requests.begin(), qp.requests.end(),
                                   [](const Request& request) { return request.awaits_data(); });
  put_field(result, 0, 8, static_cast<std::uint8_t>(qp.state));
  put_field(result, 8, 5, static_cast<std::uint64_t>(reads));
  put_field(result, 13, 1, qp.state == QpState::Sqd && !qp.requests.empty());
  put_field(result, 16, 16, qp.sq_producer);
  put_field(result, 32, 16, qp.sq_next);
  put_field(result, 48, 16, qp.sq_retired);
  put_field(result, 64, 16, qp.rq_producer);
  put_field(result, 80, 16, qp.rq_head);
  put_field(result, 96, 24, qp.send_psn);
  put_field(result, 128, 24, qp.una_psn);
  put_field(result, 160, 24, qp.rq_psn);
  return result;
}

void Qps::fail(Qp& qp, bool answers) {
  if (qp.state == QpState::Err) return wake(qp);
  qp.state = QpState::Err;
  qp.ack_timer.stop();
  qp.rnr_wait = false;
  ++qp.try_no;
  qp.requests.clear();
  qp.fetched.clear();
  if (!answers) qp.answers.clear();
  nic_.memory.unbind(qp.index());
  wake(qp);
}

void Qps::send_failed(Qp& qp) {
  if (qp.type == QpType::Rc) return fail(qp);
  qp.state = QpState::Sqe;
  ++qp.try_no;
  qp.requests.clear();
  qp.fetched.clear();
  qp.next_psn = qp.send_psn;
  qp.una_psn = qp.sent_psn = qp.next_psn;
  qp.sq_next = qp.sq_retired;
  wake(qp);
}

void Qps::event(Qp& qp, Event event, std::uint32_t detail) {
  if (const Cq* cq = nic_.queues.cq(qp.send_cqn))
    nic_.queues.event(cq->eqn, {Source::Qp, qp.index()}, {event, qp.number, detail});
}

void Qps::established(Qp& qp) {
  if (qp.told_established) return;
  qp.told_established = true;
  event(qp, Event::CommEstablished);
}

void Qps::cq_failed(std::uint32_t cqn, std::uint32_t first) {
  const auto end = [this](Qp& qp) {
    if (qp.state == QpState::Err || qp.state == QpState::Reset) return;
    event(qp, Event::QpFatal, static_cast<std::uint32_t>(Status::FatalErr));
    fail(qp);
  };
  if (const QpPtr qp = find(first)) end(*qp);
  for (const auto& [index, qp] : qps_)
    if (qp->send_cqn == cqn || qp->receive_cqn == cqn) end(*qp);
}

bool Qps::send_doorbell(std::uint32_t number, std::uint16_t producer, std::uint8_t uar) {
  nic_.count(Count::SendDoorbells);
  const QpPtr qp = find(number);
  if (!qp || qp->uar != uar || qp->state == QpState::Reset) return false;
  const auto posted = static_cast<std::uint16_t>(producer - qp->sq_retired);
  if (posted > 1u << qp->sq_log_depth) return false;
  if (posted < static_cast<std::uint16_t>(qp->sq_producer - qp->sq_retired)) return true;  // an old one, late
  qp->sq_producer = producer;
  qp->send_signal.raise();
  return true;
}

bool Qps::receive_doorbell(std::uint32_t number, std::uint16_t producer, std::uint8_t uar) {
  const QpPtr qp = find(number);
  if (!qp || qp->uar != uar || qp->use_srq) return false;
  const auto posted = static_cast<std::uint16_t>(producer - qp->rq_done);
  if (posted > 1u << qp->rq_log_depth) return false;
  if (posted < static_cast<std::uint16_t>(qp->rq_producer - qp->rq_done)) return false;
  qp->rq_producer = producer;
  qp->request_signal.raise();
  return true;
}

}  // namespace rnic::reference
