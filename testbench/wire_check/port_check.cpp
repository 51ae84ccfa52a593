#include "testbench/wire_check/port_check.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace rnic::wire_check {
namespace {

// docs/host_interface.md: opcodes, states, attributes.
constexpr std::uint8_t kCreateQp = 0x40, kDestroyQp = 0x41, kModifyQp = 0x42;
constexpr std::uint8_t kReset = 0, kInit = 1, kRtr = 2, kRts = 3, kErr = 6;
constexpr std::uint32_t kPkeyIndex = 0x10, kAv = 0x80, kPathMtu = 0x100, kTimeout = 0x200, kRqPsn = 0x1000,
                        kMaxRdAtomic = 0x2000, kSqPsn = 0x10000, kDestQpn = 0x100000;
constexpr std::uint32_t kLongestMtu = 4096;
constexpr std::size_t kShortestFrame = 60, kLongestRawFrame = 4096;
constexpr std::size_t kTold = 24;             // packets of a queue pair with a complaint
constexpr std::uint16_t kPartition = 0x7fff;  // of a P_Key (10.9.3)

/// What ModifyQp says of the VLAN tag of a path: VID, whether there is one, priority.
Tag tag_of(const AdminCommand& command) {
  constexpr std::uint16_t kTagged = 0x1000;
  const auto bits = static_cast<std::uint16_t>(command.field(38, 2));
  return (bits & kTagged) != 0 ? Tag(bits & ~kTagged) : std::nullopt;
}

Address address_at(const AdminCommand& command, std::size_t at) {
  Address address;
  std::copy_n(command.body.begin() + static_cast<std::ptrdiff_t>(at), address.size(), address.begin());
  return address;
}

}  // namespace

PortCheck::PortCheck(ReadMemory memory, Complain complain)
    : complain_(std::move(complain)),
      admin_(
          std::move(memory), [this](const AdminCommand& command) { commanded(command); },
          [this] {
            queue_pairs_.clear();
            by_peer_.clear();
            arrivals_.clear();
          }) {}

void PortCheck::commanded(const AdminCommand& command) {
  if (command.opcode == kCreateQp) {
    QueuePair& qp = queue_pairs_[command.number];
    unlist(qp.attributes.dest_qpn, command.number);
    if (qp.former) unlist(qp.former->attributes.dest_qpn, command.number);
    qp = {};
    qp.attributes.number = command.number;
    qp.attributes.service = static_cast<Service>(command.field(39, 1) & 3);
    qp.attributes.mtu = kLongestMtu;
    // Queue pairs stay where they are as long as they are known.
    qp.complain = [this, &qp](const Packet& packet, const std::string& what) { complain_of(qp, packet, what); };
    return;
  }
  const auto it = queue_pairs_.find(command.number);
  if (it == queue_pairs_.end()) return;
  if (command.opcode == kDestroyQp) end(it->second);
  if (command.opcode == kModifyQp) modify(it->second, command);
}

void PortCheck::modify(QueuePair& qp, const AdminCommand& command) {
  Attributes& a = qp.attributes;
  const auto mask = static_cast<std::uint32_t>(command.field(72, 3));
  const auto given = [&](std::uint32_t attributes) { return (mask & attributes) != 0; };
  if (given(kPathMtu)) a.mtu = 128u << command.field(1, 1);
  if (given(kMaxRdAtomic)) a.read_limit = static_cast<std::uint32_t>(command.field(3, 1));
  if (given(kTimeout)) a.ack_timeout = static_cast<std::uint8_t>(command.field(5, 1));
  if (given(kRqPsn)) a.receive_psn = static_cast<std::uint32_t>(command.field(8, 3));
  if (given(kSqPsn)) a.send_psn = static_cast<std::uint32_t>(command.field(17, 3));
  if (given(kPkeyIndex | kAv | kDestQpn)) {
    if (!qp.former || qp.former->attributes.dest_qpn != a.dest_qpn) unlist(a.dest_qpn, a.number);
    a.dest_qpn = static_cast<std::uint32_t>(command.field(11, 3));
    if (!qp.former || qp.former->attributes.dest_qpn != a.dest_qpn) by_peer_.emplace(a.dest_qpn, a.number);
    qp.pkey = static_cast<std::uint16_t>(command.field(15, 2));
    a.source_port = static_cast<std::uint16_t>(command.field(23, 2));
    qp.old_tag = std::exchange(a.tag, tag_of(command));
    qp.readdressed = now_;
    a.source = address_at(command, 40);
    a.dest = address_at(command, 56);
  }
  move(qp, static_cast<std::uint8_t>(command.field(0, 1) & 7));
}

void PortCheck::unlist(std::uint32_t dest_qpn, std::uint32_t number) {
  const auto [first, last] = by_peer_.equal_range(dest_qpn);
  const auto it = std::find_if(first, last, [number](const auto& entry) { return entry.second == number; });
  if (it != last) by_peer_.erase(it);
}

void PortCheck::move(QueuePair& qp, std::uint8_t state) {
  const std::uint8_t before = std::exchange(qp.state, state);
  if (state == kReset || state == kErr) {
    end(qp);
    if (state != kReset) return;
    if (qp.distrusted) distrust(qp);  // what it has sent was not followed, and some of it may still leave
    qp.distrusted = false;
    return;
  }
  if (state == kRtr && before != kRtr) make_ready(qp);
  if (state == kRts && before == kRtr) qp.requester.begin(Requester(qp.attributes, qp.complain));
  if (qp.ended) return;
  qp.requester.for_present([&](Requester& one) {
    if (state == kRts && before == kRts) one.resume();
    one.change(qp.attributes);
  });
  qp.responder.for_present([&](Responder& one) { one.change(qp.attributes); });
}

/// Nothing new begins to leave.
void PortCheck::end(QueuePair& qp) {
  if (qp.ended) return;
  settle(qp);
  qp.ended = now_;
  if (!qp.responder.exists()) return;
  if (qp.former && qp.former->attributes.dest_qpn != qp.attributes.dest_qpn)
    unlist(qp.former->attributes.dest_qpn, qp.attributes.number);
  qp.former = {qp.attributes, now_};
}

/// From here on it takes requests, of another incarnation than before. What is in the NIC already may be for it.
void PortCheck::make_ready(QueuePair& qp) {
  const bool leaves = qp.former && may_leave(qp.former->ended);
  qp.ended.reset();
  qp.requester.end(leaves);
  qp.responder.end(leaves);
  // The NIC takes what arrived in its order, so the new incarnation gets what arrived behind some point, or nothing.
  std::vector<Packet> waiting;
  bool forgeries = false;
  for (const auto& [packet, forged, came] : arrivals_) {
    if (packet.dest_qpn != qp.attributes.number || !may_move(came, moment())) continue;
    forgeries = forgeries || forged;
    if (is_from_its_peer(qp, packet) && !packet.is_response()) waiting.push_back(packet);
  }
  for (std::size_t first = 0; first <= waiting.size(); ++first) {
    Responder responder(qp.attributes, qp.complain);
    for (const Packet& packet : std::span(waiting).subspan(first)) responder.received(packet);
    qp.responder.begin(std::move(responder));
  }
  if (forgeries) distrust(qp);
}

void PortCheck::settle(QueuePair& qp) {
  if (!qp.former || qp.ended || may_leave(qp.former->ended)) return;
  qp.requester.settle();
  qp.responder.settle();
  if (qp.former->attributes.dest_qpn != qp.attributes.dest_qpn)
    unlist(qp.former->attributes.dest_qpn, qp.attributes.number);
  qp.former.reset();
}

void PortCheck::keep(QueuePair& qp, bool came, const Packet& packet) const {
  if (!qp.newest.empty()) {
    Event& before = qp.newest.back();
    const bool middle = !packet.begins() && !packet.ends() && before.packet.operation == packet.operation;
    if (middle && before.came == came && packet.psn == ((before.last_psn + 1) & kMask24)) {
      before.last_psn = packet.psn;
      return;
    }
  }
  qp.newest.push_back({now_, came, packet, packet.psn});
  if (qp.newest.size() > kTold) qp.newest.pop_front();
}

/// A complaint about a queue pair ends with what it has sent and got before.
void PortCheck::complain_of(const QueuePair& qp, const Packet& packet, const std::string& what) const {
  std::string text = describe(packet) + " of QP " + std::to_string(qp.attributes.number) + ": " + what;
  for (const Event& event : qp.newest)
    text += "\n    " + std::to_string(static_cast<std::int64_t>(event.at - now_) / 1000) +
            (event.came ? " ns came " : " ns sent ") + describe(event.packet) +
            (event.last_psn == event.packet.psn ? "" : " to " + std::to_string(event.last_psn));
  complain_(text);
}

/// All packets of a connected queue pair have the tag of its path. What was begun under another path may still leave.
bool PortCheck::has_its_tag(const QueuePair& qp, const Packet& packet) const {
  if (packet.service == Service::kUd || packet.tag == qp.attributes.tag) return true;
  if (qp.former && packet.tag == qp.former->attributes.tag) return true;
  return packet.tag == qp.old_tag && now_ <= qp.readdressed + kGrace;
}

void PortCheck::distrust(QueuePair& qp) {
  qp.distrusted = true;
  qp.requester.for_present([](Requester& one) { one.distrust(); });
  qp.responder.for_present([](Responder& one) { one.distrust(); });
}

/// The queue pair that has sent `packet`. A datagram names it; otherwise it is one that is connected there. Where there
/// are several nobody can say, and so none of them is judged any more.
PortCheck::QueuePair* PortCheck::sender_of(const Packet& packet) {
  if (packet.service == Service::kUd) {
    const auto it = queue_pairs_.find(packet.from_qpn);
    return it == queue_pairs_.end() ? nullptr : &it->second;
  }
  std::vector<QueuePair*> found;
  const auto [first, last] = by_peer_.equal_range(packet.dest_qpn);
  for (auto it = first; it != last; ++it) {
    QueuePair& qp = queue_pairs_.at(it->second);
    const auto is_its = [&packet](const Attributes& a) {
      return a.dest_qpn == packet.dest_qpn && a.service == packet.service && a.dest == packet.dest &&
             a.source == packet.source;
    };
    const bool of_former = qp.former && may_leave(qp.former->ended) && is_its(qp.former->attributes);
    if (qp.responder.exists() && (is_its(qp.attributes) || of_former)) found.push_back(&qp);
  }
  if (found.size() > 1) {
    const auto gone = [&](const QueuePair* qp) { return qp->ended && !may_leave(*qp->ended); };
    if (!std::all_of(found.begin(), found.end(), gone)) std::erase_if(found, gone);
  }
  if (found.size() == 1) return found.front();
  for (QueuePair* qp : found) distrust(*qp);
  return nullptr;
}

/// A frame that is not of RoCEv2 comes from a queue pair for such frames.
void PortCheck::sent_other(Frame frame) const {
  const auto sends = [this](const auto& entry) {
    const QueuePair& qp = entry.second;
    return qp.attributes.service == Service::kRawPacket &&
           (qp.ended ? may_leave(*qp.ended) : qp.state >= kRts && qp.state < kErr);
  };
  if (!std::any_of(queue_pairs_.begin(), queue_pairs_.end(), sends))
    return complain_("a frame that is not of RoCEv2 (A17.3.1)");
  if (frame.size() < kShortestFrame || frame.size() > kLongestRawFrame)
    complain_("an Ethernet frame of " + std::to_string(frame.size()) + " bytes (host interface, Ethernet)");
}

void PortCheck::sent(Frame frame, Picoseconds now) {
  if (!admin_.configured()) return;
  now_ = now;
  bytes_ += frame.size();
  admin_.catch_up();
  Faults faults;
  const auto packet = read(frame, faults);
  if (!packet) return sent_other(frame);
  for (const auto* list : {&faults.fatal, &faults.other})
    for (const auto& fault : *list) complain_(describe(*packet) + ": " + fault);
  if (!faults.fatal.empty()) return;
  if (admin_.mac() != 0 && packet->source_mac != admin_.mac())
    complain_(describe(*packet) + ": its source is not the station's MAC address");
  QueuePair* const qp = sender_of(*packet);
  if (qp == nullptr || qp->distrusted) return;
  settle(*qp);
  keep(*qp, false, *packet);
  if (!has_its_tag(*qp, *packet)) complain_of(*qp, *packet, "its VLAN tag is not that of its path (host interface)");
  if (qp->ended && !may_leave(*qp->ended))
    return complain_of(*qp, *packet, "sent long after the end of its queue pair (10.3.1)");
  if (packet->is_response()) {
    if (qp->responder.exists()) qp->responder.sent(*packet, moment());
  } else if (qp->requester.exists()) {
    qp->requester.sent(*packet, moment());
  } else {
    complain_of(*qp, *packet, "a request before RTS (10.3.1)");
  }
}

void PortCheck::written(std::uint64_t offset, std::span<const std::uint8_t> data, const std::vector<bool>& enabled,
                        Picoseconds now) {
  now_ = now;
  admin_.catch_up();
  admin_.written(offset, data, enabled);
}

void PortCheck::received(Frame frame, bool forged, Picoseconds now) {
  now_ = now;
  bytes_ += frame.size();
  Faults faults;
  const auto packet = read(frame, faults);
  if (!packet || packet->service == Service::kUd) return;
  admin_.catch_up();
  if (!forged && !faults.fatal.empty()) return;
  while (!arrivals_.empty() && !may_move(arrivals_.front().came, moment())) arrivals_.pop_front();
  arrivals_.push_back({*packet, forged, moment()});
  const auto it = queue_pairs_.find(packet->dest_qpn);
  if (it == queue_pairs_.end()) return;
  QueuePair& qp = it->second;
  if (qp.state == kReset || qp.state == kInit) return;
  if (forged) return distrust(qp);
  take(qp, *packet, moment());
}

/// Whether a reliable queue pair takes it: it comes by the path of its peer.
bool PortCheck::is_from_its_peer(const QueuePair& qp, const Packet& packet) const {
  const Attributes& a = qp.attributes;
  return packet.dest_mac == admin_.mac() && packet.service == a.service && packet.dest == a.source &&
         packet.source == a.dest && vid(packet.tag) == vid(a.tag) && packet.service == Service::kRc &&
         ((packet.pkey ^ qp.pkey) & kPartition) == 0;
}

void PortCheck::take(QueuePair& qp, const Packet& packet, Moment now) {
  if (!is_from_its_peer(qp, packet)) return;
  keep(qp, true, packet);
  if (packet.is_response())
    qp.requester.for_present([&](Requester& one) { one.received(packet, now); });
  else
    qp.responder.for_present([&](Responder& one) { one.received(packet); });
}

}  // namespace rnic::wire_check
