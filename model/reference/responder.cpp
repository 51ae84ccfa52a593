#include "model/reference/responder.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"
#include "model/reference/requester.hpp"

namespace rnic::reference {
namespace {

constexpr std::uint32_t kHalf = 1u << 23;
constexpr std::uint32_t kLongest = 1u << 31;  ///< Longest message (9.7.4.1.6)
/// Reads and atomics that may stand in line, repeated ones too: twice what may be outstanding.
constexpr std::size_t kMostAnswers = 2 * kMaxReads;

bool is_atomic(std::uint8_t kind) { return kind == op::CompareSwap || kind == op::FetchAdd; }

Access remote_access(const Qp& qp, Right right, std::uint32_t key, std::uint64_t va, std::uint64_t bytes) {
  return {key, va, bytes, qp.pd, qp.index(), right};
}

std::uint32_t responses_of(std::uint32_t bytes, std::size_t mtu) {
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>((bytes + mtu - 1) / mtu));
}

}  // namespace

Responder::Responder(Nic& nic) : nic_(nic), atomic_free_(nic.clock) {}

Task<Done> Responder::take_requests(QpPtr qp) {
  while (!qp->gone) {
    if (qp->state == QpState::Err || qp->state == QpState::Reset) {
      for (const Packet& packet : qp->requests_in)
        if (packet.dest_qpn == qp->number) nic_.count(*qp, Count::RxBadState, QpCount::BadState);
      qp->requests_in.clear();
    }
    if (qp->state == QpState::Err) flush(*qp);
    if (qp->requests_in.empty()) {
      co_await qp->request_signal.wait();
      continue;
    }
    AtWork work(qp);
    Packet packet = std::move(qp->requests_in.front());
    qp->requests_in.pop_front();
    if (nic_.observer != nullptr) nic_.observer->takes(packet);
    if (qp->state == QpState::Rtr) nic_.qps.established(*qp);
    if (qp->type == QpType::Rc) {
      co_await take_reliable(qp, std::move(packet));
    } else if (qp->type == QpType::Uc) {
      co_await take_unreliable(qp, std::move(packet));
    } else {
      co_await take_datagram(qp, std::move(packet));
    }
    if (nic_.observer != nullptr) nic_.observer->taken(*qp, false);
  }
  co_return Done{};
}

/// A request on a reliable connection: by its PSN it is the next, one of the future, or one that has been (9.7.4.1.1).
Task<Done> Responder::take_reliable(QpPtr qp, Packet packet) {
  const std::uint32_t distance = ahead(packet.psn, qp->rq_psn);
  const std::uint8_t kind = packet.kind();
  if (distance >= kHalf) {
    repeat(*qp, packet);
    co_return Done{};
  }
  if (distance != 0) {
    nic_.count(*qp, Count::RxPsnError, QpCount::PsnErrors);
    // One NAK a gap: only the expected PSN ends it (9.7.5.2.2, decisions 42).
    if (!qp->nak_sent) {
      qp->nak_sent = true;
      qp->answers.push_back({Answer::Kind::Nak, qp->rq_psn, qp->msn, aeth::NakPsn});
      qp->answer_signal.raise();
    }
    co_return Done{};
  }
  qp->nak_sent = false;
  if (!is_known(QpType::Rc, kind) || !in_sequence(*qp, kind) || !right_length(*qp, packet)) {
    invalid(*qp);
    co_return Done{};
  }
  if (!allowed(*qp, kind)) {
    nic_.count(*qp, Count::RxForbidden, QpCount::Forbidden);
    refuse(*qp, aeth::NakInvalidRequest, Status::RemInvReqErr);
    co_return Done{};
  }
  if (kind == op::ReadRequest) {
    co_await read(qp, std::move(packet));
  } else if (is_atomic(kind)) {
    co_await atomic(qp, std::move(packet));
  } else {
    co_await message(qp, std::move(packet));
  }
  co_return Done{};
}

/// Middle and last packets follow a first one of their kind, and nothing else does (9.7.4.1.2).
bool Responder::in_sequence(const Qp& qp, std::uint8_t kind) const {
  if (!qp.open) return begins_message(kind) || kind == op::ReadRequest || is_atomic(kind);
  if (begins_message(kind)) return false;
  return qp.open_kind == op::SendFirst ? is_send(kind) : is_write(kind);
}

/// The queue pair is set up for such requests (9.7.4.1.3).
bool Responder::allowed(const Qp& qp, std::uint8_t kind) const {
  if (is_write(kind)) return qp.a.remote_write;
  if (kind == op::ReadRequest) return qp.a.remote_read;
  if (is_atomic(kind)) return qp.a.remote_atomic;
  return true;
}

/// Lengths of packets, and of a WRITE as its RETH says (9.7.4.1.6).
bool Responder::right_length(const Qp& qp, const Packet& packet) const {
  const std::uint8_t kind = packet.kind();
  const std::size_t bytes = packet.payload.size(), mtu = qp.mtu();
  if (kind == op::ReadRequest) return bytes == 0 && packet.length <= kLongest;
  if (is_atomic(kind)) return bytes == 0 && packet.va % 8 == 0;
  if (!ends_message(kind) && bytes != mtu) return false;
  if (bytes > mtu) return false;
  if (!begins_message(kind) && bytes == 0) return false;
  if (is_send(kind)) return qp.message_bytes + bytes <= kLongest;
  const std::uint32_t left = begins_message(kind) ? packet.length : qp.write_left;
  if (left > kLongest) return false;
  return ends_message(kind) ? bytes == left : bytes < left;
}

Task<Done> Responder::read(QpPtr qp, Packet packet) {
  if (qp->reads_open >= qp->a.max_dest_rd_atomic) {  // 9.4.4, decisions 5
    invalid(*qp);
    co_return Done{};
  }
  if (packet.length != 0 &&
      nic_.memory.check(remote_access(*qp, Right::RemoteRead, packet.rkey, packet.va, packet.length)) != Xlate::Ok) {
    nic_.count(*qp, Count::RxPlaceFaults, QpCount::PlaceFaults);
    refuse(*qp, aeth::NakRemoteAccess, Status::RemAccessErr);
    co_return Done{};
  }
  Answer answer{Answer::Kind::Read, packet.psn};
  answer.packets = responses_of(packet.length, qp->mtu());
  qp->rq_psn = (qp->rq_psn + answer.packets) & kMask24;
  qp->msn = (qp->msn + 1) & kMask24;
  answer.msn = qp->msn;
  answer.va = packet.va;
  answer.rkey = packet.rkey;
  answer.length = packet.length;
  ++qp->reads_open;
  qp->answers.push_back(answer);
  qp->answer_signal.raise();
  co_return Done{};
}

/// What is there already has waited for what is done now, if it is new.
void Responder::count_held(Qp& qp) {
  for (const Packet& waiting : qp.requests_in)
    if (ahead(waiting.psn, qp.rq_psn) < kHalf) nic_.count(qp, Count::RxHeld, QpCount::Held);
}

/// Read, compute, write, with nobody else's atomic of this NIC between (9.4.5). What is behind it on its queue pair
/// waits.
Task<Done> Responder::atomic(QpPtr qp, Packet packet) {
  if (qp->reads_open >= qp->a.max_dest_rd_atomic) {
    invalid(*qp);
    co_return Done{};
  }
  const std::uint64_t life = qp->life;
  while (atomic_busy_) co_await atomic_free_.wait();
  if (qp->life != life || !qp->receives()) co_return Done{};
  atomic_busy_ = true;
  const Translation translation =
      co_await nic_.memory.translate(remote_access(*qp, Right::RemoteAtomic, packet.rkey, packet.va, 8));
  std::optional<Bytes> old;
  if (translation.status == Xlate::Ok) old = co_await nic_.pcie.read(translation.pieces[0].address, 8);
  const bool alive = qp->life == life && qp->receives();
  if (alive && old) {
    const std::uint64_t original = little(*old, 0, 8);
    std::uint64_t value = original + packet.swap_add;
    if (packet.kind() == op::CompareSwap) value = original == packet.compare ? packet.swap_add : original;
    Bytes data;
    append_little(data, value, 8);
    nic_.pcie.write(translation.pieces[0].address, data);
    nic_.count(Count::RxAtomics);
    qp->rq_psn = (qp->rq_psn + 1) & kMask24;
    qp->msn = (qp->msn + 1) & kMask24;
    qp->atomics[packet.psn] = original;
    qp->atomic_order.push_back(packet.psn);
    if (qp->atomic_order.size() > kMaxReads) {
      qp->atomics.erase(qp->atomic_order.front());
      qp->atomic_order.pop_front();
    }
    Answer answer{Answer::Kind::Atomic, packet.psn, qp->msn};
    answer.original = original;
    ++qp->reads_open;
    qp->answers.push_back(answer);
    qp->answer_signal.raise();
  } else if (alive) {
    const bool ours = translation.status == Xlate::Ok || translation.status == Xlate::PageListError;
    if (translation.status != Xlate::Ok) nic_.count(*qp, Count::RxPlaceFaults, QpCount::PlaceFaults);
    refuse(*qp, ours ? aeth::NakRemoteOperational : aeth::NakRemoteAccess,
           ours ? Status::FatalErr : Status::RemAccessErr);
  }
  count_held(*qp);
  atomic_busy_ = false;
  atomic_free_.raise();
  co_return Done{};
}

/// The payload of a packet of a SEND or RDMA WRITE goes where it belongs. Of a WRITE the whole range is looked at with
/// its first packet (9.7.4.1.5), and what is written with each.
Task<Moved> Responder::place(QpPtr qp, const Packet& packet) {
  const bool first = begins_message(packet.kind());
  if (first) {
    qp->message_bytes = 0;
    qp->write_va = packet.va;
    qp->write_key = packet.rkey;
    qp->write_left = packet.length;
  }
  Moved moved;
  if (is_send(packet.kind())) {
    Access access{0, 0, 0, qp->receive->pd, qp->index(), Right::LocalWrite};
    std::vector<Segment> segments = qp->receive->segments;
    moved = co_await scatter(nic_, std::move(segments), qp->message_bytes, packet.payload, access);
  } else if (qp->write_left != 0) {
    Access access = remote_access(*qp, Right::RemoteWrite, qp->write_key, qp->write_va, qp->write_left);
    if (first) moved.xlate = nic_.memory.check(access);
    if (moved.xlate != Xlate::Ok) moved.status = Status::LocProtErr;
    std::vector<Segment> part{{qp->write_va, static_cast<std::uint32_t>(packet.payload.size()), qp->write_key}};
    if (moved.status == Status::Success) moved = co_await scatter(nic_, std::move(part), 0, packet.payload, access);
  }
  co_return moved;
}

/// It has: the message goes on behind it.
void Responder::placed(Qp& qp, const Packet& packet) {
  const bool is_a_send = is_send(packet.kind());
  const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
  qp.message_bytes += bytes;
  qp.write_va += bytes;
  if (!is_a_send) qp.write_left -= bytes;
  qp.open = !ends_message(packet.kind());
  qp.open_kind = is_a_send ? op::SendFirst : op::WriteFirst;
}

/// A packet of a SEND or RDMA WRITE.
Task<Done> Responder::message(QpPtr qp, Packet packet) {
  const std::uint64_t life = qp->life;
  const std::uint8_t kind = packet.kind();
  const bool first = begins_message(kind), last = ends_message(kind), is_a_send = is_send(kind);
  const auto void_now = [&] { return qp->life != life || !qp->receives(); };
  if (is_a_send ? first : last && has_immediate(kind)) {
    const Taken taken = co_await take_receive(qp, is_a_send && !packet.payload.empty());
    if (void_now() || taken == Taken::Failed) co_return Done{};
    if (taken == Taken::None) {
      not_ready(*qp);
      co_return Done{};
    }
    qp->receive_for_write = !is_a_send;
  }
  const Moved moved = co_await place(qp, packet);
  if (void_now()) co_return Done{};
  if (moved.status != Status::Success) {
    nic_.count(*qp, Count::RxPlaceFaults, QpCount::PlaceFaults);
    if (is_a_send) {
      local_failure(*qp, packet, moved.status, static_cast<std::uint8_t>(moved.xlate));
    } else if (moved.status == Status::FatalErr) {
      refuse(*qp, aeth::NakRemoteOperational, Status::FatalErr);
    } else {
      refuse(*qp, aeth::NakRemoteAccess, Status::RemAccessErr);
    }
    co_return Done{};
  }
  placed(*qp, packet);
  if (has_invalidate(kind)) {
    const std::uint32_t key = packet.immediate;
    const MemOp outcome = co_await nic_.memory.invalidate(key, qp->pd, qp->index(), true);
    nic_.count(outcome == MemOp::Ok ? Count::MemoryOps : Count::MemoryOpsRefused);
    if (void_now()) co_return Done{};
    count_held(*qp);
    if (outcome != MemOp::Ok) {  // decisions 48
      complete(*qp, Status::LocProtErr, packet, qp->message_bytes, static_cast<std::uint8_t>(outcome));
      qp->answers.push_back({Answer::Kind::Nak, packet.psn, qp->msn, aeth::NakRemoteAccess});
      nic_.qps.fail(*qp, true);
      co_return Done{};
    }
  }
  co_await nic_.pcie.written();  // what is acknowledged is on its way to memory
  if (void_now()) co_return Done{};
  qp->rq_psn = (qp->rq_psn + 1) & kMask24;
  if (last) qp->msn = (qp->msn + 1) & kMask24;
  qp->executed = packet.psn;
  if (qp->receive && last) complete(*qp, Status::Success, packet, qp->message_bytes);
  if (packet.ack_request) queue_ack(*qp, packet.psn);
  co_return Done{};
}

/// A request that has been executed is not executed again; its answer is given again (9.7.5.1.3).
void Responder::repeat(Qp& qp, const Packet& packet) {
  nic_.count(qp, Count::RxDuplicate, QpCount::Duplicates);
  const std::uint8_t kind = packet.kind();
  const auto waiting = static_cast<std::size_t>(std::count_if(
      qp.answers.begin(), qp.answers.end(), [](const Answer& a) { return a.kind >= Answer::Kind::Read; }));
  const bool asks_for_data = kind == op::ReadRequest || is_atomic(kind);
  if (asks_for_data && waiting >= kMostAnswers) return nic_.count(qp, Count::RxNoRoom, QpCount::NoRoom);
  if (asks_for_data && (!right_length(qp, packet) || !allowed(qp, kind))) return;  // decisions 72
  if (kind == op::ReadRequest) {
    const std::uint32_t packets = responses_of(packet.length, qp.mtu());
    // A response with a PSN that is yet to come would acknowledge what nobody has asked for.
    if (packets > ahead(qp.rq_psn, packet.psn)) return;
    // Its requester has gone back, and would throw away what older answers still bring from this PSN on.
    for (Answer& older : qp.answers) {
      const std::uint32_t before = ahead(packet.psn, older.psn);
      if (older.kind == Answer::Kind::Read && before < older.packets) older.packets = std::max(before, older.sent);
    }
    Answer answer{Answer::Kind::Read, packet.psn, qp.msn};
    answer.packets = packets;
    answer.va = packet.va;
    answer.rkey = packet.rkey;
    answer.length = packet.length;
    answer.again = true;
    qp.answers.push_back(answer);
  } else if (is_atomic(kind)) {
    nic_.count(Count::RxAtomicRepeats);
    const auto it = qp.atomics.find(packet.psn);
    if (it == qp.atomics.end()) return;
    Answer answer{Answer::Kind::Atomic, packet.psn, qp.msn};
    answer.original = it->second;
    answer.again = true;
    qp.answers.push_back(answer);
  } else if ((is_send(kind) || is_write(kind)) && is_known(QpType::Rc, kind) && packet.ack_request && qp.executed) {
    // The PSN of a Read or an atomic would say that it has been answered (decisions 41).
    return queue_ack(qp, *qp.executed);
  }
  qp.answer_signal.raise();
}

/// A refusal ends the queue pair (9.9.3, classes B, C, and F for what is ours). What is in front of it is still
/// answered, and may be refused in its turn: that is told to the peer alone (decisions 76).
void Responder::refuse(Qp& qp, std::uint8_t syndrome, Status cause) {
  qp.answers.push_back({Answer::Kind::Nak, qp.rq_psn, qp.msn, syndrome});
  if (qp.state == QpState::Err) return qp.answer_signal.raise();
  const Event event = cause == Status::RemAccessErr   ? Event::QpAccessError
                      : cause == Status::RemInvReqErr ? Event::QpRequestError
                                                      : Event::QpFatal;
  nic_.qps.event(qp, event, static_cast<std::uint32_t>(cause));
  nic_.qps.fail(qp, true);
}

void Responder::invalid(Qp& qp) {
  nic_.count(qp, Count::RxInvalidRequest, QpCount::InvalidRequests);
  refuse(qp, aeth::NakInvalidRequest, Status::RemInvReqErr);
}

/// ACKs that have not gone yet become one (9.7.5.1.2).
void Responder::queue_ack(Qp& qp, std::uint32_t psn) {
  if (qp.answers.empty() || qp.answers.back().kind != Answer::Kind::Ack) qp.answers.push_back({Answer::Kind::Ack});
  qp.answers.back().psn = psn;
  qp.answers.back().msn = qp.msn;
  qp.answer_signal.raise();
}

/// No receive WQE: the requester is told when to come again (9.7.5.2.8).
void Responder::not_ready(Qp& qp) {
  nic_.count(qp, Count::RxRnr, QpCount::NoReceive);
  qp.nak_sent = true;
  qp.answers.push_back(
      {Answer::Kind::Nak, qp.rq_psn, qp.msn, static_cast<std::uint8_t>(aeth::Rnr | qp.a.min_rnr_timer)});
  qp.answer_signal.raise();
}

}  // namespace rnic::reference
