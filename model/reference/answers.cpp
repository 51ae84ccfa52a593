// What the responder sends (InfiniBand specification 9.7.5): ACKs, NAKs, Read responses, results of atomics, in the
// order of their PSNs.
#include <algorithm>

#include "model/reference/nic.hpp"
#include "model/reference/requester.hpp"
#include "model/reference/responder.hpp"

namespace rnic::reference {
namespace {

constexpr std::size_t kBurstBytes = 32768, kBurstPackets = 16;

}  // namespace

Task<Done> Responder::answer(QpPtr qp) {
  while (!qp->gone) {
    if (qp->answers.empty()) {
      co_await qp->answer_signal.wait();
      continue;
    }
    AtWork work(qp);
    if (qp->answers.front().kind == Answer::Kind::Read) {
      co_await answer_read(qp);
      continue;
    }
    while (!nic_.port.has_room()) co_await nic_.port.room.wait();
    if (qp->answers.empty()) continue;
    const Answer answer = qp->answers.front();
    qp->answers.pop_front();
    Packet packet;
    packet.opcode = op::Acknowledge;
    packet.psn = answer.psn;
    packet.msn = answer.msn;
    packet.syndrome = answer.syndrome;
    if (answer.kind == Answer::Kind::Atomic) {
      packet.opcode = op::AtomicAcknowledge;
      nic_.count(Count::TxReadResponses);
      packet.original = answer.original;
      if (!answer.again) --qp->reads_open;
    }
    if (answer.kind == Answer::Kind::Nak) {
      const bool rnr = answer.syndrome >> 5 == 1;
      nic_.count(*qp, rnr ? Count::TxRnrNaks : Count::TxNaks, rnr ? QpCount::RnrNaksSent : QpCount::NaksSent);
    } else if (answer.kind == Answer::Kind::Ack) {
      nic_.count(Count::TxAcks);
    }
    co_await send_answer(qp, std::move(packet));
  }
  co_return Done{};
}

/// Fills in what all answers have, and sends it.
Task<Done> Responder::send_answer(QpPtr qp, Packet packet) {
  while (!nic_.port.has_room()) co_await nic_.port.room.wait();
  if (packet.syndrome == 0) {
    const auto posted = static_cast<std::uint16_t>(qp->rq_producer - qp->rq_done);
    packet.syndrome = qp->use_srq ? std::uint8_t{aeth::NoCredit} : credit_code(posted);
  }
  packet.pkey = qp->a.pkey;
  packet.path = qp->a.path;
  packet.path.source_mac = nic_.mac;
  packet.dest_qpn = qp->a.dest_qpn;
  if (nic_.observer != nullptr) nic_.observer->sends(*qp, packet, nullptr);
  nic_.port.send(build(packet), [] {});
  co_return Done{};
}

/// Some responses of the Read in front. A first request has been checked, but its key may have been taken away since;
/// a repeated one whose memory opens no more is left unanswered (9.7.5.1.3).
Task<Done> Responder::answer_read(QpPtr qp) {
  const std::uint64_t life = qp->life;
  const Answer& front = qp->answers.front();
  const std::uint32_t psn = front.psn, first = front.sent;
  const auto finish = [&] {
    if (!qp->answers.front().again) --qp->reads_open;
    qp->answers.pop_front();
  };
  if (front.sent >= front.packets) {
    finish();
    co_return Done{};
  }
  const std::size_t mtu = qp->mtu();
  const std::size_t count = std::min<std::size_t>({front.packets - first, kBurstPackets, kBurstBytes / mtu});
  const std::size_t from = first * mtu, to = std::min<std::size_t>(from + count * mtu, front.length);
  Moved moved;
  if (to > from) {
    std::vector<Segment> segments{{front.va, front.length, front.rkey}};
    Access access{front.rkey, front.va, 0, qp->pd, qp->index(), Right::RemoteRead};
    moved = co_await gather(nic_, std::move(segments), from, to - from, access);
  }
  const auto in_front = [&] {
    return qp->life == life && !qp->answers.empty() && qp->answers.front().kind == Answer::Kind::Read &&
           qp->answers.front().psn == psn;
  };
  if (!in_front()) co_return Done{};
  if (moved.status != Status::Success) {
    if (qp->answers.front().again) {
      finish();
      co_return Done{};
    }
    nic_.count(Count::TxDropped);
    nic_.count(*qp, QpCount::SendFaults);
    const bool ours = moved.status == Status::FatalErr;
    qp->answers.clear();  // what is behind it is not answered
    qp->rq_psn = (psn + first) & kMask24;
    refuse(*qp, ours ? aeth::NakRemoteOperational : aeth::NakRemoteAccess,
           ours ? Status::FatalErr : Status::RemAccessErr);
    co_return Done{};
  }
  for (std::size_t i = 0; i < count; ++i) {
    while (!nic_.port.has_room()) co_await nic_.port.room.wait();
    if (!in_front() || qp->answers.front().sent != first + i) co_return Done{};
    Answer& answer = qp->answers.front();
    if (answer.sent >= answer.packets) co_return Done{};  // a newer request has taken over
    const std::size_t whole = std::max<std::size_t>(1, (answer.length + mtu - 1) / mtu);
    const bool begins = answer.sent == 0, ends = answer.sent + 1 == whole;
    Packet packet;
    packet.opcode = begins ? (ends ? op::ReadResponseOnly : op::ReadResponseFirst)
                           : (ends ? op::ReadResponseLast : op::ReadResponseMiddle);
    packet.psn = (psn + answer.sent) & kMask24;
    packet.msn = answer.msn;
    const std::size_t at = i * mtu, end = std::min(at + mtu, moved.bytes.size());
    packet.payload.assign(moved.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          moved.bytes.begin() + static_cast<std::ptrdiff_t>(end));
    ++answer.sent;
    nic_.count(Count::TxReadResponses);
    co_await send_answer(qp, std::move(packet));
  }
  if (in_front() && qp->answers.front().sent >= qp->answers.front().packets) finish();
  co_return Done{};
}

}  // namespace rnic::reference
