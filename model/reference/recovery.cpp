// What answers do to the requester: acknowledgement, refusal, loss (InfiniBand specification 9.7.5, 9.7.6, 9.9.2).
#include <algorithm>
#include <array>

#include "model/reference/nic.hpp"
#include "model/reference/requester.hpp"

namespace rnic::reference {
namespace {

/// Units of 10 us.
constexpr std::array<std::uint32_t, 32> kRnrTimes = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr std::uint8_t kInvalidCredits = 31;
constexpr unsigned kForEver = 7;

bool is_ack(std::uint8_t syndrome) { return syndrome >> 5 == 0; }

}  // namespace

Time rnr_time(std::uint8_t code) { return kRnrTimes[code & 31] * 10 * kMicrosecond; }

std::uint32_t credits_of(std::uint8_t code) {
  if (code < 2) return code;
  const std::uint32_t power = 1u << (code / 2);
  return code % 2 == 0 ? power : power + power / 2;
}

std::uint8_t credit_code(std::uint32_t wqes) {
  std::uint8_t code = 0;
  while (code + 1 < kInvalidCredits && credits_of(static_cast<std::uint8_t>(code + 1)) <= wqes) ++code;
  return code;
}

Task<Done> Requester::take_responses(QpPtr qp) {
  while (!qp->gone) {
    if (qp->responses_in.empty()) {
      co_await qp->response_signal.wait();
      continue;
    }
    AtWork work(qp);
    Packet packet = std::move(qp->responses_in.front());
    qp->responses_in.pop_front();
    if (nic_.observer != nullptr) nic_.observer->takes(packet);
    if (qp->type != QpType::Rc || (qp->state != QpState::Rts && qp->state != QpState::Sqd)) {
      nic_.count(*qp, Count::RxBadState, QpCount::BadState);
    } else if (packet.kind() == op::Acknowledge) {
      acknowledge(*qp, packet);
    } else {
      co_await take_data(qp, std::move(packet));
    }
    if (nic_.observer != nullptr) nic_.observer->taken(*qp, true);
  }
  co_return Done{};
}

/// An acknowledge packet: ACK, RNR NAK or NAK.
void Requester::acknowledge(Qp& qp, const Packet& packet) {
  const std::uint8_t type = packet.syndrome >> 5;
  if (type != 0 && type != 1 && type != 3) {  // decisions 67
    nic_.count(qp, Count::RxStrayResponses, QpCount::StrayResponses);
    return;
  }
  if (ahead(packet.psn, qp.una_psn) >= ahead(qp.sent_psn, qp.una_psn)) {
    // Of what has not left, or is acknowledged. The newest may have news of credits (9.7.7.2.3).
    if (type == 0 && ((packet.psn + 1) & kMask24) == qp.una_psn) {
      nic_.count(Count::RxAcks);
      credits(qp, packet);
    } else {
      nic_.count(qp, Count::RxStrayResponses, QpCount::StrayResponses);
    }
    return;
  }
  if (type == 0) {
    credits(qp, packet);
    if (acknowledge_before(qp, (packet.psn + 1) & kMask24)) nic_.count(Count::RxAcks);
    return;
  }
  // A NAK acknowledges what is before it (9.7.5.1.2), unless the answer to a Read there is missing (decisions 46).
  // One inside a Read belongs to that Read, whatever of its answer has come.
  Request* request = holder(qp, packet.psn);
  if (request == nullptr) return;
  const bool awaited = request->awaits_data();
  if (!acknowledge_before(qp, awaited ? (request->first_psn + request->answered) & kMask24 : packet.psn)) return;
  nic_.count(qp, Count::RxNaks, type == 1 ? QpCount::RnrNaksReceived : QpCount::NaksReceived);
  request = holder(qp, packet.psn);
  if (request == nullptr) return;
  if (type == 1) return wait_for_receive(qp, packet.psn, packet.syndrome);
  switch (packet.syndrome) {
    case aeth::NakPsn:
      if (qp.went_back == packet.psn) return;  // it says nothing new
      if (retry(qp, packet.psn)) nic_.count(qp, Count::SequenceRetries, QpCount::SequenceRetries);
      return;
    case aeth::NakInvalidRequest: return fail(qp, *request, Status::RemInvReqErr, packet.syndrome);
    case aeth::NakRemoteAccess: return fail(qp, *request, Status::RemAccessErr, packet.syndrome);
    case aeth::NakRemoteOperational: return fail(qp, *request, Status::RemOpErr, packet.syndrome);
    default: return fail(qp, *request, Status::BadRespErr, packet.syndrome);  // decisions 67
  }
}

/// Everything before `end` is acknowledged, up to the first Read or atomic whose answer has not come: that is an
/// implied NAK (9.7.5.1.4). False: there is one.
bool Requester::acknowledge_before(Qp& qp, std::uint32_t end) {
  const std::uint32_t una = qp.una_psn, target = ahead(end, una);
  std::optional<std::uint32_t> gap;
  std::uint32_t reached = target;
  for (Request& request : qp.requests) {
    if (request.packets == 0 || request.done) continue;
    if (request.awaits_data()) {
      const std::uint32_t expected = ahead((request.first_psn + request.answered) & kMask24, una);
      if (expected < target) {
        gap = (request.first_psn + request.answered) & kMask24;
        reached = expected;
      }
      break;
    }
    if (ahead(request.end(), una) > target) break;
    request.done = true;
  }
  if (reached != 0) {
    qp.una_psn = (una + reached) & kMask24;
    progress(qp);
  }
  retire(qp);
  if (gap) nic_.count(qp, Count::RxGaps, QpCount::Gaps);
  if (gap && qp.receives()) missing(qp, *gap);
  return !gap;
}

/// Forward progress: retries begin anew, and so does the timer while something that has left is unacknowledged.
void Requester::progress(Qp& qp) {
  qp.retries = qp.a.retry_count;
  qp.rnr_retries = qp.a.rnr_retry;
  qp.gap.reset();
  if (ahead(qp.sent_psn, qp.una_psn) >= (1u << 23)) qp.sent_psn = qp.una_psn;
  // What was to be sent again, and has arrived after all.
  if (ahead(qp.send_psn, qp.una_psn) > ahead(qp.next_psn, qp.una_psn)) {
    qp.send_psn = qp.una_psn;
    ++qp.try_no;
  }
  if (qp.una_psn == qp.sent_psn) {
    qp.ack_timer.stop();
  } else if (qp.ack_timer.runs()) {
    start_timer(qp);
  }
}

/// An ACK of MSN m with c credits allows the requests up to m + c. The limit never goes back.
void Requester::credits(Qp& qp, const Packet& packet) {
  const std::uint8_t code = packet.syndrome & 31;
  if (code == kInvalidCredits) {
    qp.limited = false;
  } else {
    const std::uint32_t limit = (packet.msn + credits_of(code)) & kMask24;
    if (!qp.limited || ahead(limit, qp.limit_ssn) < (1u << 23)) qp.limit_ssn = limit;
    qp.limited = true;
  }
  if (qp.first_only && (!qp.limited || ahead(qp.limit_ssn, qp.ssn) < (1u << 23))) qp.first_only = false;
  qp.send_signal.raise();
}

/// A response of a Read, or the answer to an atomic.
Task<Done> Requester::take_data(QpPtr qp, Packet packet) {
  const auto stray = [&] { nic_.count(*qp, Count::RxStrayResponses, QpCount::StrayResponses); };
  const std::uint32_t una = qp->una_psn;
  if (ahead(packet.psn, una) >= ahead(qp->sent_psn, una)) {
    stray();
    co_return Done{};
  }
  const auto waits = [](const Request& request) { return request.awaits_data(); };
  auto it = std::find_if(qp->requests.begin(), qp->requests.end(), waits);
  if (it == qp->requests.end()) {
    stray();
    co_return Done{};
  }
  const std::uint32_t expected = (it->first_psn + it->answered) & kMask24;
  if (ahead(packet.psn, una) < ahead(expected, una)) {
    stray();
    co_return Done{};
  }
  if (packet.psn != expected) {
    (void)acknowledge_before(*qp, packet.psn);
    co_return Done{};
  }
  if (!acknowledge_before(*qp, expected)) co_return Done{};
  it = std::find_if(qp->requests.begin(), qp->requests.end(), waits);
  Request& request = *it;
  const bool has_syndrome = packet.kind() != op::ReadResponseMiddle;
  if (!fits(*qp, request, packet) || (has_syndrome && !is_ack(packet.syndrome))) {
    nic_.count(*qp, Count::RxBadResponses, QpCount::BadResponses);
    fail(*qp, request, Status::BadRespErr, has_syndrome ? packet.syndrome : 0);
    co_return Done{};
  }
  nic_.count(Count::RxReadResponses);
  Bytes data = std::move(packet.payload);
  if (request.wqe.is_atomic()) append_little(data, packet.original, 8);
  const std::uint64_t life = qp->life, offset = request.answered * qp->mtu();
  std::vector<Segment> segments = request.wqe.segments;
  Access access;
  access.pd = qp->pd;
  access.qp = qp->index();
  access.right = Right::ReadSink;
  const Moved moved = co_await scatter(nic_, std::move(segments), offset, std::move(data), access);
  if (qp->life != life) co_return Done{};
  Request* still = holder(*qp, expected);
  if (still == nullptr || !still->awaits_data()) co_return Done{};
  if (moved.status != Status::Success) {
    nic_.count(*qp, Count::RxPlaceFaults, QpCount::PlaceFaults);
    fail(*qp, *still, moved.status, static_cast<std::uint8_t>(moved.xlate));
    co_return Done{};
  }
  if (has_syndrome) credits(*qp, packet);
  ++still->answered;
  still->done = still->answered == still->packets;
  qp->una_psn = (expected + 1) & kMask24;
  progress(*qp);
  retire(*qp);
  co_return Done{};
}

/// Opcode and length are those of the response that is expected. A request may have been sent again for its rest, and
/// answers to it and to the older one both count.
bool Requester::fits(const Qp& qp, const Request& request, const Packet& packet) const {
  const std::uint8_t kind = packet.kind();
  if (request.wqe.is_atomic()) return kind == op::AtomicAcknowledge && packet.payload.empty();
  const bool last = request.answered + 1 == request.packets;
  const std::size_t bytes = last ? request.wqe.length - request.answered * qp.mtu() : qp.mtu();
  if (packet.payload.size() != bytes) return false;
  const bool may_begin = request.starts.count(packet.psn) != 0;
  const bool may_go_on = packet.psn != request.first_psn;
  if (kind == op::ReadResponseFirst) return may_begin && !last;
  if (kind == op::ReadResponseOnly) return may_begin && last;
  if (kind == op::ReadResponseMiddle) return may_go_on && !last;
  return kind == op::ReadResponseLast && may_go_on && last;
}

/// The response of this PSN is missing. It is asked for again once; if that is lost, too, the timer notices.
void Requester::missing(Qp& qp, std::uint32_t psn) {
  if (qp.gap == psn || qp.went_back == psn) return;
  if (!retry(qp, psn)) return;
  nic_.count(qp, Count::SequenceRetries, QpCount::SequenceRetries);
  qp.gap = psn;
}

/// Goes back to `psn`, unless the retries are used up (9.7.6.1.4, 9.9.2.4.1). False: they are.
bool Requester::retry(Qp& qp, std::uint32_t psn) {
  if (qp.retries == 0) {
    nic_.count(qp, Count::RetriesExhausted, QpCount::RetriesExhausted);
    if (Request* request = holder(qp, psn)) fail(qp, *request, Status::RetryExcErr, 0);
    return false;
  }
  --qp.retries;
  go_back(qp, psn);
  return true;
}

void Requester::go_back(Qp& qp, std::uint32_t psn) {
  qp.ack_timer.stop();
  ++qp.try_no;
  qp.send_psn = psn;
  qp.went_back = psn;
  qp.send_signal.raise();
}

void Requester::wait_for_receive(Qp& qp, std::uint32_t psn, std::uint8_t syndrome) {
  if (qp.rnr_wait) return;
  if (qp.a.rnr_retry != kForEver) {
    if (qp.rnr_retries == 0) {
      nic_.count(qp, Count::RetriesExhausted, QpCount::RetriesExhausted);
      return fail(qp, *holder(qp, psn), Status::RnrRetryExcErr, syndrome);
    }
    --qp.rnr_retries;
  }
  nic_.count(Count::RnrRetries);
  go_back(qp, psn);
  qp.rnr_wait = true;
  nic_.clock.at(nic_.clock.now() + rnr_time(syndrome), [qp = nic_.qps.find(qp.number), life = qp.life] {
    if (qp->life != life) return;
    qp->rnr_wait = false;
    qp->send_signal.raise();
  });
}

/// The time-out of the local ACK timeout t: 4.096 us * 2^t; 0: none (9.7.6.1.3).
void Requester::start_timer(Qp& qp) {
  if (qp.a.ack_timeout == 0) return;
  qp.ack_timer.set(nic_.clock.now() + ((Time{4096} * kNanosecond) << qp.a.ack_timeout));
}

void Requester::timed_out(Qp& qp) {
  if (qp.state != QpState::Rts && qp.state != QpState::Sqd) return;
  qp.gap.reset();
  std::uint32_t oldest = qp.una_psn;
  if (retry(qp, oldest)) nic_.count(qp, Count::AckTimeouts, QpCount::AckTimeouts);
}

}  // namespace rnic::reference
