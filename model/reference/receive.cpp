// Receive WQEs, from a queue of their own or a shared one, and their entries (InfiniBand specification 10.2.9, 10.8.3).
#include "model/reference/nic.hpp"
#include "model/reference/responder.hpp"

namespace rnic::reference {

Task<Responder::Taken> Responder::take_receive(QpPtr qp, bool has_bytes) {
  // On UC and UD one may be left of a message that came to nothing.
  if (qp->receive && (qp->receive->read || !has_bytes)) co_return Taken::Yes;
  const std::uint64_t life = qp->life;
  std::uint64_t base = qp->rq_base;
  unsigned log_depth = qp->rq_log_depth, log_stride = qp->rq_log_stride;
  std::uint32_t pd = qp->pd;
  std::uint16_t index = 0;
  if (qp->use_srq) {
    Srq* srq = nic_.queues.srq(qp->srqn);
    if (srq == nullptr || srq->error) {
      nic_.count(*qp, Count::RxSrqErrors, QpCount::SrqErrors);
      if (qp->type == QpType::Rc) {
        refuse(*qp, aeth::NakRemoteOperational, Status::RemOpErr);
      } else {
        nic_.qps.event(*qp, Event::QpFatal, static_cast<std::uint32_t>(Status::LocQpOpErr));
        nic_.qps.fail(*qp);
      }
      co_return Taken::Failed;
    }
    if (srq->head == srq->producer) co_return Taken::None;
    base = srq->base;
    log_depth = srq->log_depth;
    log_stride = srq->log_stride;
    pd = srq->pd;
    index = srq->head++;
    nic_.queues.look_at_limit(*srq);
  } else {
    if (!qp->receive && qp->rq_head == qp->rq_producer) co_return Taken::None;
    index = qp->receive ? qp->receive->name : qp->rq_head++;
    qp->receive.emplace().name = index;
    if (!has_bytes) co_return Taken::Yes;
  }
  const std::uint64_t slot = index & ((1u << log_depth) - 1), from = base + (slot << log_stride);
  nic_.count(Count::WqeFetches);
  auto bytes = co_await nic_.pcie.read(from, std::size_t{1} << log_stride);
  if (qp->life != life || qp->state == QpState::Err) co_return Taken::Failed;
  auto receive = bytes ? decode_receive(*bytes, index, qp->use_srq, pd) : std::nullopt;
  const bool has_tag = receive.has_value();
  if (has_tag) {
    qp->receive = std::move(receive);
    if (!qp->receive->malformed) co_return Taken::Yes;
  }
  const Status fault = bytes ? Status::LocQpOpErr : Status::FatalErr;
  nic_.count(*qp, Count::RxPlaceFaults, QpCount::PlaceFaults);
  if (qp->use_srq && !has_tag) {
    // Without its tag the WQE is lost: the shared queue gives no more (11.6.3.3).
    Srq* srq = nic_.queues.srq(qp->srqn);
    srq->error = true;
    nic_.queues.event(srq->eqn, {Source::Srq, srq->number % kSrqs}, {Event::SrqError, srq->number, 0});
    if (qp->type == QpType::Rc) {
      refuse(*qp, aeth::NakRemoteOperational, fault);
    } else {
      nic_.qps.event(*qp, Event::QpFatal, static_cast<std::uint32_t>(fault));
      nic_.qps.fail(*qp);
    }
    co_return Taken::Failed;
  }
  local_failure(*qp, Packet{}, fault, 0);
  co_return Taken::Failed;
}

void Responder::complete(Qp& qp, Status status, const Packet& packet, std::uint32_t bytes, std::uint8_t syndrome) {
  Completion entry;
  const std::uint8_t kind = packet.kind();
  entry.status = status;
  entry.opcode = is_write(kind) ? cqe::ReceiveWrite : cqe::Receive;
  entry.wqe_index = qp.receive->name;
  entry.qpn = qp.number;
  entry.is_receive = true;
  if (status == Status::Success) {
    entry.solicited = packet.solicited;
    entry.with_imm = has_immediate(kind);
    entry.with_invalidate = has_invalidate(kind);
    if (entry.with_imm || entry.with_invalidate) entry.immediate = packet.immediate;
    entry.byte_count = bytes;
    entry.grh = qp.type == QpType::Ud;
    entry.source_qpn = packet.source_qpn;
    if (entry.grh) entry.tag = packet.path.tag;
    entry.l3_ok = packet.checksums.l3_ok;
    entry.l4_ok = packet.checksums.l4_ok;
  }
  entry.syndrome = syndrome;
  qp.receive.reset();
  qp.message_bytes = 0;
  ++qp.rq_done;
  nic_.queues.complete(qp.receive_cqn, entry);
}

/// The Receive fails, and its queue pair: the peer hears that the message is too long, or that it is our own fault.
void Responder::local_failure(Qp& qp, const Packet& packet, Status status, std::uint8_t syndrome) {
  complete(qp, status, packet, 0, syndrome);
  if (qp.type == QpType::Rc) {
    const std::uint8_t nak = status == Status::LocLenErr ? aeth::NakInvalidRequest : aeth::NakRemoteOperational;
    qp.answers.push_back({Answer::Kind::Nak, qp.rq_psn, qp.msn, nak});
  }
  nic_.qps.fail(qp, true);
}

/// In ERR every Receive completes; of a shared queue the one that was taken (10.3.1.7, 11.6.3.1).
void Responder::flush(Qp& qp) {
  qp.rest_signal.raise();
  Packet packet;
  if (qp.receive && qp.use_srq) {
    if (qp.receive_for_write) packet.opcode = op::WriteLastImmediate;
    complete(qp, Status::WrFlushErr, packet, 0);
  }
  if (qp.use_srq) {
    if (!qp.last_wqe_told && !qp.leaving) nic_.qps.event(qp, Event::LastWqeReached);
    qp.last_wqe_told = true;
    return;
  }
  while (qp.rq_done != qp.rq_producer) {
    qp.receive.emplace();
    qp.receive->name = qp.rq_done;
    nic_.count(Count::FlushedWqes);
    complete(qp, Status::WrFlushErr, packet, 0);
  }
  qp.rq_head = qp.rq_done;
}

}  // namespace rnic::reference
