#include "model/reference/port.hpp"

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

/// Of one partition, one of them a full member of it; a base of zero is of none (10.9.3).
bool same_partition(std::uint16_t one, std::uint16_t other) {
  constexpr std::uint16_t kFull = 0x8000, kBase = 0x7fff;
  return ((one ^ other) & kBase) == 0 && (one & kBase) != 0 && ((one | other) & kFull) != 0;
}

/// An address in a header of its own version: the IPv4-mapped form is for our tables alone (annex A17).
bool of_its_version(const Path& path) { return path.ipv6 != is_ipv4(path.dest); }

}  // namespace

Port::Port(Nic& nic) : room(nic.clock), nic_(nic) {}

/// A frame to our own address comes back, and never reaches the wire; one to a group comes back too, as no switch
/// reflects it (decisions 61, 64).
void Port::send(Bytes frame, std::function<void()> left) {
  const std::uint64_t dest = big(frame, 0, 6);
  const bool own = dest == nic_.mac, group = (dest >> 40 & 1) != 0;
  nic_.count(Count::TxFrames);
  if (own || (group && nic_.datagrams.any())) {
    nic_.clock.at(nic_.clock.now() + kCycle, [this, frame, left, own] {
      if (own) left();
      if (nic_.enabled()) receive(frame, false);
    });
    if (own) return;
  }
  waiting_bytes_ += frame.size();
  out.push_back({std::move(frame), std::move(left)});
}

void Port::left() {
  const Frame frame = std::move(out.front());
  out.pop_front();
  waiting_bytes_ -= frame.bytes.size();
  if (has_room()) room.raise();
  frame.left();
}

void Port::receive(Bytes frame, bool bad) {
  constexpr Time kThrough = 10 * kCycle;
  nic_.clock.at(nic_.clock.now() + kThrough, [this, frame = std::move(frame), bad] {
    if (nic_.enabled()) take(frame, bad);
  });
}

void Port::take(const Bytes& frame, bool bad) {
  nic_.count(Count::RxFrames);
  Packet packet;
  const Verdict verdict = parse(frame, nic_.mac, packet);
  switch (bad && verdict != Verdict::NotRoce ? Verdict::Malformed : verdict) {
    case Verdict::NotRoce:
      nic_.count(Count::RxNotRoce);
      if (!bad) nic_.ethernet.take(frame);
      return;
    case Verdict::Malformed: return nic_.count(Count::RxMalformed);
    case Verdict::BadIcrc: return nic_.count(Count::RxBadIcrc);
    case Verdict::Congestion: return nic_.count(Count::RxCongestion);
    case Verdict::Good: break;
  }
  nic_.count(Count::RxRoce);
  const bool datagram = packet.service() == QpType::Ud;
  if (packet.path.dest_mac != nic_.mac && packet.dest_qpn == kMulticastQpn && datagram) {
    const auto* members = nic_.datagrams.members(packet.path.dest);
    if (members == nullptr) return drop(packet, Count::RxNoQp);
    for (const std::uint32_t qpn : std::set(*members)) {
      nic_.count(Count::MulticastCopies);
      packet.dest_qpn = qpn;
      deliver(packet, true);
    }
    return;
  }
  deliver(packet, false);
}

void Port::drop(const Packet& packet, Count why) {
  nic_.count(why);
  if (nic_.observer != nullptr) nic_.observer->drops(packet, why);
}

void Port::drop(const Packet& packet, Qp& qp, Count why, QpCount own) {
  nic_.count(qp, own);
  drop(packet, why);
}

/// To the queue pair that it is for, if that takes it (9.6.1).
void Port::deliver(const Packet& packet, bool to_group) {
  const QpPtr qp = nic_.qps.find(packet.dest_qpn);
  if (!qp) return drop(packet, Count::RxNoQp);
  if (packet.service() != qp->type || !qp->receives()) return drop(packet, *qp, Count::RxBadState, QpCount::BadState);
  if (qp->type == QpType::RawPacket) {
    qp->requests_in.push_back(packet);
    return qp->request_signal.raise();
  }
  const QpAttributes& a = qp->a;
  const bool right_addresses =
      to_group || (of_its_version(packet.path) &&
                   (qp->type == QpType::Ud ? packet.path.dest == a.path.source || packet.path.dest == a.path.dest
                                           : packet.path.dest == a.path.source && packet.path.source == a.path.dest &&
                                                 packet.path.vid() == a.path.vid()));
  if (!right_addresses || !same_partition(packet.pkey, a.pkey))
    return drop(packet, *qp, Count::RxBadPeer, QpCount::BadPeer);
  if (qp->type == QpType::Ud && packet.qkey != a.qkey) return drop(packet, *qp, Count::RxBadQkey, QpCount::BadQkey);
  if (qp->type == QpType::Rc && is_response(packet.kind())) {
    qp->responses_in.push_back(packet);
    qp->response_signal.raise();
  } else {
    qp->requests_in.push_back(packet);
    qp->request_signal.raise();
  }
}

}  // namespace rnic::reference
