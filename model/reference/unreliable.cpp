// Unreliable connections and datagrams (InfiniBand specification 9.8.2, 9.8.3): nothing is answered, and what is wrong
// is dropped (9.9.3, classes D and E).
#include <algorithm>

#include "model/reference/datagrams.hpp"
#include "model/reference/nic.hpp"
#include "model/reference/responder.hpp"

namespace rnic::reference {

/// The message is dropped, and what is left of it behind this packet. The receive WQE that it took serves the next one.
void Responder::drop_message(Qp& qp, std::uint8_t kind) {
  qp.open = false;
  qp.broken = !ends_message(kind);
  qp.message_bytes = 0;
}

/// A message lives while its packets follow each other; a first one begins the next, whatever its PSN (9.8.2.2.1).
Task<Done> Responder::take_unreliable(QpPtr qp, Packet packet) {
  const std::uint64_t life = qp->life;
  const std::uint8_t kind = packet.kind();
  const bool first = begins_message(kind), is_a_send = is_send(kind);
  const bool in_line = qp->open && packet.psn == qp->rq_psn && is_a_send == (qp->open_kind == op::SendFirst);
  qp->rq_psn = (packet.psn + 1) & kMask24;
  if ((first && qp->open) || (!first && !in_line && !qp->broken))
    nic_.count(*qp, Count::RxBrokenMessages, QpCount::BrokenMessages);
  if (!first && !in_line) {
    drop_message(*qp, kind);
    co_return Done{};
  }
  if (first) {
    qp->broken = false;
    qp->open = false;
    qp->message_bytes = 0;
  }
  if (!right_length(*qp, packet) || !allowed(*qp, kind)) {
    nic_.count(*qp, Count::RxInvalidRequest, QpCount::InvalidRequests);
    drop_message(*qp, kind);
    co_return Done{};
  }
  const bool last = ends_message(kind);
  if (is_a_send ? first : last && has_immediate(kind)) {
    const Taken taken = co_await take_receive(qp, is_a_send && !packet.payload.empty());
    if (qp->life != life || !qp->receives() || taken == Taken::Failed) co_return Done{};
    if (taken == Taken::None) {
      nic_.count(*qp, Count::RxRnr, QpCount::NoReceive);
      drop_message(*qp, kind);
      co_return Done{};
    }
  }
  const Moved moved = co_await place(qp, packet);
  if (qp->life != life || !qp->receives()) co_return Done{};
  if (moved.status != Status::Success) {
    nic_.count(*qp, Count::RxPlaceFaults, QpCount::PlaceFaults);
    drop_message(*qp, kind);
    if (is_a_send && moved.status != Status::LocLenErr)
      local_failure(*qp, packet, moved.status, static_cast<std::uint8_t>(moved.xlate));
    co_return Done{};
  }
  placed(*qp, packet);
  if (last && (is_a_send || has_immediate(kind))) complete(*qp, Status::Success, packet, qp->message_bytes);
  co_return Done{};
}

/// A datagram: in front of its payload its global route header (11.4.1.2). An Ethernet frame of a RawPacket queue pair
/// has none.
Task<Done> Responder::take_datagram(QpPtr qp, Packet packet) {
  const std::uint64_t life = qp->life;
  if (packet.payload.size() > qp->mtu()) {
    nic_.count(*qp, Count::RxInvalidRequest, QpCount::InvalidRequests);
    co_return Done{};
  }
  const Taken taken = co_await take_receive(qp, true);
  if (qp->life != life || !qp->receives() || taken == Taken::Failed) co_return Done{};
  if (taken == Taken::None) {
    nic_.count(*qp, Count::RxRnr, QpCount::NoReceive);
    co_return Done{};
  }
  Bytes data = packet.grh;
  data.insert(data.end(), packet.payload.begin(), packet.payload.end());
  const auto bytes = static_cast<std::uint32_t>(data.size());
  Access access{0, 0, 0, qp->receive->pd, qp->index(), Right::LocalWrite};
  std::vector<Segment> segments = qp->receive->segments;
  const Moved moved = co_await scatter(nic_, std::move(segments), 0, std::move(data), access);
  if (qp->life != life || !qp->receives()) co_return Done{};
  if (moved.status == Status::Success) {
    complete(*qp, Status::Success, packet, bytes);
    co_return Done{};
  }
  nic_.count(*qp, Count::RxPlaceFaults, QpCount::PlaceFaults);
  const auto syndrome = static_cast<std::uint8_t>(moved.xlate);
  if (moved.status != Status::LocLenErr) {
    local_failure(*qp, packet, moved.status, syndrome);
  } else if (qp->use_srq) {
    complete(*qp, Status::LocLenErr, packet, 0, syndrome);  // others have been taken behind it
  }
  co_return Done{};
}

void Datagrams::address(Packet& packet, const Qp& qp, const SendWqe& wqe) const {
  constexpr std::uint32_t kPrivileged = 1u << 31;
  const Path& own = qp.a.path;
  packet.path = wqe.path;
  packet.path.source_mac = nic_.mac;
  packet.path.source = wqe.second_source ? own.dest : own.source;
  packet.path.ipv6 = !is_ipv4(packet.path.source);
  const std::uint32_t label = wqe.path.flow_label;
  packet.path.source_port = static_cast<std::uint16_t>(0xc000 | ((label & 0x3fff) ^ (label >> 14 & 0x3f)));
  packet.dest_qpn = wqe.dest_qpn;
  packet.qkey = (wqe.qkey & kPrivileged) != 0 ? qp.a.qkey : wqe.qkey;  // 10.2.5
  packet.source_qpn = qp.number;
}

AdminStatus Datagrams::attach(const Address& group, std::uint32_t qpn) {
  const QpPtr qp = nic_.qps.find(qpn);
  if (!qp) return AdminStatus::BadNumber;
  if (qp->type != QpType::Ud || !multicast_mac(group)) return AdminStatus::BadParameter;
  const auto it = groups_.find(group);
  if (it == groups_.end() && groups_.size() >= kGroups) return AdminStatus::NoGroup;
  return groups_[group].insert(qpn).second ? AdminStatus::Success : AdminStatus::Exists;
}

AdminStatus Datagrams::detach(const Address& group, std::uint32_t qpn) {
  const QpPtr qp = nic_.qps.find(qpn);
  if (!qp) return AdminStatus::BadNumber;
  if (qp->type != QpType::Ud || !multicast_mac(group)) return AdminStatus::BadParameter;
  const auto it = groups_.find(group);
  if (it == groups_.end() || it->second.erase(qpn) == 0) return AdminStatus::NotAttached;
  if (it->second.empty()) groups_.erase(it);
  return AdminStatus::Success;
}

bool Datagrams::attached(std::uint32_t qpn) const {
  return std::any_of(groups_.begin(), groups_.end(), [qpn](const auto& group) { return group.second.count(qpn) != 0; });
}

const std::set<std::uint32_t>* Datagrams::members(const Address& group) const {
  const auto it = groups_.find(group);
  return it == groups_.end() ? nullptr : &it->second;
}

}  // namespace rnic::reference
