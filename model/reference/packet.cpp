#include "model/reference/packet.hpp"

#include <algorithm>

#include "model/reference/crc.hpp"

namespace rnic::reference {
namespace {

constexpr std::uint16_t kIpv4 = 0x0800, kIpv6 = 0x86dd, kVlan = 0x8100, kRocePort = 4791;
constexpr std::size_t kEthernet = kEthernetHeader, kTag = 4, kUdp = 8, kPorts = 4, kBth = 12, kIcrc = 4, kSmallest = 60,
                      kMostPayload = 4096;
constexpr std::uint8_t kUdpProtocol = 17;

bool has_reth(std::uint8_t kind) {
  return kind == op::WriteFirst || kind == op::WriteOnly || kind == op::WriteOnlyImmediate || kind == op::ReadRequest;
}
bool has_aeth(std::uint8_t kind) {
  return kind == op::ReadResponseFirst || kind == op::ReadResponseLast || kind == op::ReadResponseOnly ||
         kind == op::Acknowledge || kind == op::AtomicAcknowledge;
}
bool is_atomic(std::uint8_t kind) { return kind == op::CompareSwap || kind == op::FetchAdd; }

/// Extended headers of a packet: bytes (table 38).
std::size_t extended_bytes(QpType service, std::uint8_t kind) {
  return (service == QpType::Ud ? 8u : 0u) + (has_reth(kind) ? 16u : 0u) + (is_atomic(kind) ? 28u : 0u) +
         (has_aeth(kind) ? 4u : 0u) + (kind == op::AtomicAcknowledge ? 8u : 0u) + (has_immediate(kind) ? 4u : 0u) +
         (has_invalidate(kind) ? 4u : 0u);
}

void append_ip(Bytes& frame, const Path& path, std::size_t udp_bytes) {
  if (path.ipv6) {
    append_big(frame, 6u << 28 | std::uint32_t{path.traffic_class} << 20 | (path.flow_label & 0xfffff), 4);
    append_big(frame, udp_bytes, 2);
    append_big(frame, kUdpProtocol, 1);
    append_big(frame, path.hop_limit, 1);
    frame.insert(frame.end(), path.source.begin(), path.source.end());
    frame.insert(frame.end(), path.dest.begin(), path.dest.end());
    return;
  }
  const std::size_t ip = frame.size();
  append_big(frame, 0x45, 1);
  append_big(frame, path.traffic_class, 1);
  append_big(frame, 20 + udp_bytes, 2);
  append_big(frame, 0, 2);
  append_big(frame, 0x4000, 2);  // do not fragment (annex A17.3.1.2.1)
  append_big(frame, path.hop_limit, 1);
  append_big(frame, kUdpProtocol, 1);
  append_big(frame, 0, 2);
  frame.insert(frame.end(), path.source.begin() + 12, path.source.end());
  frame.insert(frame.end(), path.dest.begin() + 12, path.dest.end());
  const std::uint16_t checksum = ipv4_checksum(frame, ip);
  frame[ip + 10] = static_cast<std::uint8_t>(checksum >> 8);
  frame[ip + 11] = static_cast<std::uint8_t>(checksum);
}

Address mapped(const Bytes& frame, std::size_t offset) {
  Address address{};
  address[10] = address[11] = 0xff;
  for (std::size_t i = 0; i < 4; ++i) address[12 + i] = frame[offset + i];
  return address;
}

/// The destination port says that a datagram is of RoCEv2 (annex A17.3.1.1).
bool has_roce_port(const Bytes& frame, std::size_t udp) { return big(frame, udp + 2, 2) == kRocePort; }

/// A frame is for this port when its MAC address is ours, or that of the group to which its IP packet goes.
bool is_for_us(const Path& path, std::uint64_t mac) {
  return path.dest_mac == mac || multicast_mac(path.dest) == path.dest_mac;
}

/// Reads the IP header at `ip`. `udp` and `end` are where the datagram begins and ends. Whether it is RoCEv2 and for
/// this port comes before what may be wrong with it.
Verdict parse_ip(const Bytes& frame, std::size_t ip, std::uint64_t mac, Packet& packet, std::size_t& udp,
                 std::size_t& end) {
  Path& path = packet.path;
  udp = ip + (path.ipv6 ? 40 : 20);
  if (frame.size() < udp + kPorts || frame[ip + (path.ipv6 ? 6 : 9)] != kUdpProtocol || !has_roce_port(frame, udp))
    return Verdict::NotRoce;
  path.source = path.ipv6 ? address_at(frame, ip + 8) : mapped(frame, ip + 12);
  path.dest = path.ipv6 ? address_at(frame, ip + 24) : mapped(frame, ip + 16);
  if (!is_for_us(path, mac)) return Verdict::NotRoce;
  const Bytes header(frame.begin() + static_cast<std::ptrdiff_t>(ip), frame.begin() + static_cast<std::ptrdiff_t>(udp));
  if (path.ipv6) {
    if (frame[ip] >> 4 != 6) return Verdict::Malformed;
    end = udp + big(frame, ip + 4, 2);
    path.traffic_class = static_cast<std::uint8_t>(big(frame, ip, 2) >> 4);
    path.flow_label = static_cast<std::uint32_t>(big(frame, ip, 4) & 0xfffff);
    path.hop_limit = frame[ip + 7];
    packet.grh = header;
    return Verdict::Good;
  }
  // No options, and no fragment (annex A17.3.1.2).
  if (frame[ip] != 0x45 || (big(frame, ip + 6, 2) & 0x3fff) != 0) return Verdict::Malformed;
  if (ipv4_checksum(frame, ip) != 0) return Verdict::Malformed;
  end = ip + big(frame, ip + 2, 2);
  path.traffic_class = frame[ip + 1];
  path.hop_limit = frame[ip + 8];
  packet.grh.assign(20, 0);
  packet.grh.insert(packet.grh.end(), header.begin(), header.end());
  return Verdict::Good;
}

void parse_extended(const Bytes& frame, std::size_t at, Packet& packet) {
  const auto next = [&](unsigned size) {
    const std::uint64_t value = big(frame, at, size);
    at += size;
    return value;
  };
  const auto next32 = [&] { return static_cast<std::uint32_t>(next(4)); };
  const std::uint8_t kind = packet.kind();
  if (packet.service() == QpType::Ud) {
    packet.qkey = next32();
    packet.source_qpn = next32() & kMask24;
  }
  if (has_reth(kind)) {
    packet.va = next(8);
    packet.rkey = next32();
    packet.length = next32();
  }
  if (is_atomic(kind)) {
    packet.va = next(8);
    packet.rkey = next32();
    packet.swap_add = next(8);
    packet.compare = next(8);
  }
  if (has_aeth(kind)) {
    packet.syndrome = static_cast<std::uint8_t>(next(1));
    packet.msn = static_cast<std::uint32_t>(next(3));
  }
  if (kind == op::AtomicAcknowledge) packet.original = next(8);
  if (has_immediate(kind) || has_invalidate(kind)) packet.immediate = next32();
}

void append_extended(Bytes& frame, const Packet& packet) {
  const std::uint8_t kind = packet.kind();
  if (packet.service() == QpType::Ud) {
    append_big(frame, packet.qkey, 4);
    append_big(frame, packet.source_qpn, 4);
  }
  if (has_reth(kind)) {
    append_big(frame, packet.va, 8);
    append_big(frame, packet.rkey, 4);
    append_big(frame, packet.length, 4);
  }
  if (is_atomic(kind)) {
    append_big(frame, packet.va, 8);
    append_big(frame, packet.rkey, 4);
    append_big(frame, packet.swap_add, 8);
    append_big(frame, packet.compare, 8);
  }
  if (has_aeth(kind)) append_big(frame, std::uint32_t{packet.syndrome} << 24 | packet.msn, 4);
  if (kind == op::AtomicAcknowledge) append_big(frame, packet.original, 8);
  if (has_immediate(kind) || has_invalidate(kind)) append_big(frame, packet.immediate, 4);
}

}  // namespace

bool is_response(std::uint8_t kind) { return kind >= op::ReadResponseFirst && kind <= op::AtomicAcknowledge; }
bool is_send(std::uint8_t kind) { return kind <= op::SendOnlyImmediate || has_invalidate(kind); }
bool is_write(std::uint8_t kind) { return kind >= op::WriteFirst && kind <= op::WriteOnlyImmediate; }
bool begins_message(std::uint8_t kind) {
  return kind == op::SendFirst || kind == op::SendOnly || kind == op::SendOnlyImmediate ||
         kind == op::SendOnlyInvalidate || kind == op::WriteFirst || kind == op::WriteOnly ||
         kind == op::WriteOnlyImmediate;
}
bool ends_message(std::uint8_t kind) {
  return (is_send(kind) || is_write(kind)) && kind != op::SendFirst && kind != op::SendMiddle &&
         kind != op::WriteFirst && kind != op::WriteMiddle;
}
bool has_immediate(std::uint8_t kind) {
  return kind == op::SendLastImmediate || kind == op::SendOnlyImmediate || kind == op::WriteLastImmediate ||
         kind == op::WriteOnlyImmediate;
}
bool has_invalidate(std::uint8_t kind) { return kind == op::SendLastInvalidate || kind == op::SendOnlyInvalidate; }

bool is_known(QpType service, std::uint8_t kind) {
  if (service == QpType::Rc) return kind <= op::SendOnlyInvalidate && kind != op::Reserved15;
  if (service == QpType::Uc) return kind <= op::WriteOnlyImmediate;
  return service == QpType::Ud && (kind == op::SendOnly || kind == op::SendOnlyImmediate);
}

Bytes build(const Packet& packet) {
  if (packet.service() == QpType::RawPacket) {
    Bytes frame = packet.payload;
    frame.resize(std::max(frame.size(), kSmallest));
    if (packet.ip_csum) insert_checksums(frame);
    return frame;
  }
  const std::size_t pad = (4 - packet.payload.size() % 4) % 4;
  const std::size_t udp_bytes =
      kUdp + kBth + extended_bytes(packet.service(), packet.kind()) + packet.payload.size() + pad + kIcrc;
  Bytes frame;
  frame.reserve(kEthernet + kTag + 40 + udp_bytes + kSmallest);
  append_big(frame, packet.path.dest_mac, 6);
  append_big(frame, packet.path.source_mac, 6);
  if (packet.path.tag) {
    append_big(frame, kVlan, 2);
    append_big(frame, *packet.path.tag, 2);
  }
  append_big(frame, packet.path.ipv6 ? kIpv6 : kIpv4, 2);
  const std::size_t ip = frame.size();
  append_ip(frame, packet.path, udp_bytes);
  append_big(frame, packet.path.source_port, 2);
  append_big(frame, kRocePort, 2);
  append_big(frame, udp_bytes, 2);
  append_big(frame, 0, 2);  // no checksum (annex A17.3.1.3)
  append_big(frame, packet.opcode, 1);
  // MigReq is 1: the state Migrated (17.2.8). The transport version is 0.
  append_big(frame, (packet.solicited ? 0x80u : 0u) | 0x40u | pad << 4, 1);
  append_big(frame, packet.pkey, 2);
  append_big(frame, packet.dest_qpn, 4);
  append_big(frame, (packet.ack_request ? 1u << 31 : 0u) | packet.psn, 4);
  append_extended(frame, packet);
  frame.insert(frame.end(), packet.payload.begin(), packet.payload.end());
  frame.resize(frame.size() + pad);
  append_little(frame, invariant_crc(frame, ip, frame.size()), 4);
  if (frame.size() < kSmallest) frame.resize(kSmallest);
  return frame;
}

std::optional<std::uint16_t> requested_tag(std::uint64_t bits) {
  constexpr std::uint64_t kWanted = 1 << 12;  // where the tag has DEI, which is 0
  if ((bits & kWanted) == 0) return std::nullopt;
  return static_cast<std::uint16_t>(bits & ~kWanted);
}

std::optional<std::uint64_t> multicast_mac(const Address& group) {
  if (is_ipv4(group)) {
    if (group[12] >> 4 != 0xe) return std::nullopt;
    return 0x01005e000000 | std::uint64_t{group[13] & 0x7fu} << 16 | std::uint64_t{group[14]} << 8 | group[15];
  }
  if (group[0] != 0xff) return std::nullopt;
  return 0x333300000000 | std::uint64_t{group[12]} << 24 | std::uint64_t{group[13]} << 16 |
         std::uint64_t{group[14]} << 8 | group[15];
}

Verdict parse(const Bytes& frame, std::uint64_t mac, Packet& packet) {
  if (frame.size() < kEthernet + 20) return Verdict::NotRoce;
  Path& path = packet.path;
  path.dest_mac = big(frame, 0, 6);
  path.source_mac = big(frame, 6, 6);
  std::size_t ip = kEthernet;
  if (big(frame, 12, 2) == kVlan) {  // one tag; behind it comes an EtherType again
    path.tag = static_cast<std::uint16_t>(big(frame, 14, 2));
    ip += kTag;
  }
  const std::uint64_t type = big(frame, ip - 2, 2);
  if (type != kIpv4 && type != kIpv6) return Verdict::NotRoce;
  path.ipv6 = type == kIpv6;
  std::size_t udp = 0, end = 0;
  if (const Verdict verdict = parse_ip(frame, ip, mac, packet, udp, end); verdict != Verdict::Good) return verdict;
  if (path.vid() == kReservedVid) return Verdict::Malformed;
  if (end > frame.size() || end < udp + kUdp + kBth + kIcrc || big(frame, udp + 4, 2) != end - udp)
    return Verdict::Malformed;
  path.source_port = static_cast<std::uint16_t>(big(frame, udp, 2));
  const std::size_t bth = udp + kUdp;
  packet.opcode = frame[bth];
  const std::uint8_t flags = frame[bth + 1];
  if ((flags & 0x0f) != 0) return Verdict::Malformed;  // transport version
  if (little(frame, end - kIcrc, 4) != invariant_crc(frame, ip, end - kIcrc)) return Verdict::BadIcrc;
  const std::size_t pad = flags >> 4 & 3;
  if (packet.opcode == kCongestionNotification) {  // 16 reserved bytes and nothing else (annex A17.9.3)
    return pad == 0 && bth + kBth + 16 + kIcrc == end ? Verdict::Congestion : Verdict::Malformed;
  }
  packet.solicited = (flags & 0x80) != 0;
  packet.pkey = static_cast<std::uint16_t>(big(frame, bth + 2, 2));
  packet.dest_qpn = static_cast<std::uint32_t>(big(frame, bth + 5, 3));
  packet.ack_request = (frame[bth + 8] & 0x80) != 0;
  packet.psn = static_cast<std::uint32_t>(big(frame, bth + 9, 3));
  const bool known = is_known(packet.service(), packet.kind());
  if (!known && packet.service() != QpType::Rc) return Verdict::Malformed;  // 9.6.1.1; RC answers it
  const std::size_t extended = known ? extended_bytes(packet.service(), packet.kind()) : 0;
  const std::size_t payload = bth + kBth + extended;
  if (payload + pad + kIcrc > end || (end - payload) % 4 != 0) return Verdict::Malformed;  // 9.2.6: whole words
  if (end - payload - pad - kIcrc > kMostPayload) return Verdict::Malformed;               // decisions 73
  const bool acknowledge = packet.service() == QpType::Rc && packet.kind() == op::Acknowledge;
  if (acknowledge && payload + pad + kIcrc != end) return Verdict::Malformed;  // decisions 48
  if (extended != 0) parse_extended(frame, bth + kBth, packet);
  packet.payload.assign(frame.begin() + static_cast<std::ptrdiff_t>(payload),
                        frame.begin() + static_cast<std::ptrdiff_t>(end - kIcrc - pad));
  return Verdict::Good;
}

}  // namespace rnic::reference
