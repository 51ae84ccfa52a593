#include "testbench/wire_check/packet.hpp"

#include <algorithm>

#include "testbench/wire_check/icrc.hpp"

namespace rnic::wire_check {
namespace {

constexpr std::size_t kEthernet = 14, kTagBytes = 4, kIpv4 = 20, kIpv6 = 40, kUdp = 8, kBth = 12, kIcrc = 4,
                      kSmallest = 60;
constexpr std::uint16_t kRocePort = 4791, kVlan = 0x8100, kReservedVid = 0xfff, kDropEligible = 0x1000;
constexpr std::uint8_t kUdpProtocol = 17;

std::uint64_t big(Frame bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[at + i];
  return value;
}

/// Sum of 16-bit words in ones' complement (RFC 1071).
std::uint16_t ones_sum(Frame bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += i % 2 == 0 ? bytes[i] << 8 : bytes[i];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

bool known(Service service, Operation operation) {
  switch (service) {
    case Service::kRc: return operation <= Operation::kSendOnlyInvalidate && operation != Operation::kReserved;
    case Service::kUc: return operation <= Operation::kWriteOnlyImmediate;
    case Service::kRawPacket: break;
    case Service::kUd: return operation == Operation::kSendOnly || operation == Operation::kSendOnlyImmediate;
  }
  return false;
}

bool has_reth(Operation operation) {
  return operation == Operation::kWriteFirst || operation == Operation::kWriteOnly ||
         operation == Operation::kWriteOnlyImmediate || operation == Operation::kReadRequest;
}

bool has_immediate(Operation operation) {
  return operation == Operation::kSendLastImmediate || operation == Operation::kSendOnlyImmediate ||
         operation == Operation::kWriteLastImmediate || operation == Operation::kWriteOnlyImmediate;
}

bool has_ieth(Operation operation) { return operation >= Operation::kSendLastInvalidate; }

bool carries_payload(const Packet& packet) {
  return packet.is_send() || packet.is_write() || packet.is_read_response();
}

/// The Ethernet and IP headers; where UDP begins and the whole ends. False: no frame of ours.
struct Outer {
  std::size_t ip{}, udp{}, end{};
  bool ipv6{};
};

std::optional<Outer> read_outer(Frame frame, Packet& packet, Faults& faults) {
  if (frame.size() < kEthernet + kIpv4 + kUdp + kBth + kIcrc) return std::nullopt;
  packet.dest_mac = big(frame, 0, 6);
  packet.source_mac = big(frame, 6, 6);
  Outer outer;
  outer.ip = kEthernet;
  if (big(frame, 12, 2) == kVlan) {
    packet.tag = static_cast<std::uint16_t>(big(frame, 14, 2));
    outer.ip += kTagBytes;
  }
  const auto type = big(frame, outer.ip - 2, 2);
  const Frame ip = frame.subspan(outer.ip);
  outer.ipv6 = type == 0x86dd;
  if (ip.size() < (outer.ipv6 ? kIpv6 : kIpv4) + kUdp + kBth + kIcrc) return std::nullopt;
  if (outer.ipv6) {
    if (ip[0] >> 4 != 6 || ip[6] != kUdpProtocol) return std::nullopt;
    std::copy_n(ip.begin() + 8, 16, packet.source.begin());
    std::copy_n(ip.begin() + 24, 16, packet.dest.begin());
    outer.udp = outer.ip + kIpv6;
    outer.end = outer.udp + big(ip, 4, 2);
  } else {
    if (type != 0x0800 || ip[0] >> 4 != 4 || ip[9] != kUdpProtocol) return std::nullopt;
    if ((ip[0] & 0xf) != 5) faults.fatal.emplace_back("an IPv4 header with options");
    packet.source[10] = packet.source[11] = packet.dest[10] = packet.dest[11] = 0xff;
    std::copy_n(ip.begin() + 12, 4, packet.source.begin() + 12);
    std::copy_n(ip.begin() + 16, 4, packet.dest.begin() + 12);
    outer.udp = outer.ip + kIpv4;
    outer.end = outer.ip + big(ip, 2, 2);
    if (ones_sum(ip.first(kIpv4)) != 0xffff) faults.fatal.emplace_back("wrong IPv4 header checksum");
    if ((big(ip, 6, 2) & 0xbfff) != 0) faults.fatal.emplace_back("an IPv4 fragment, or its reserved bit");
    if ((ip[6] & 0x40) == 0) faults.other.emplace_back("Don't Fragment is not set");
  }
  if (big(frame, outer.udp + 2, 2) != kRocePort) return std::nullopt;
  if (vid(packet.tag) == kReservedVid) faults.fatal.emplace_back("a VLAN tag of the reserved VID (802.1Q 9.6)");
  if (packet.tag && (*packet.tag & kDropEligible) != 0) faults.other.emplace_back("DEI in a VLAN tag");
  return outer;
}

void check_udp(Frame frame, const Outer& outer, const Packet& packet, Faults& faults) {
  const auto length = big(frame, outer.udp + 4, 2), checksum = big(frame, outer.udp + 6, 2);
  if (length != outer.end - outer.udp) faults.fatal.emplace_back("UDP length is not that of the IP payload");
  if (packet.source_port < 0xc000) faults.other.emplace_back("UDP source port below 0xc000");
  if (checksum == 0) return;  // none, as A17.3.1 recommends
  const std::size_t addresses = outer.ipv6 ? 32 : 8;
  std::uint32_t sum = ones_sum(frame.subspan(outer.udp - addresses, addresses));
  sum += kUdpProtocol + static_cast<std::uint32_t>(length);
  if (ones_sum(frame.subspan(outer.udp, outer.end - outer.udp), sum) != 0xffff)
    faults.other.emplace_back("wrong UDP checksum");  // the ICRC is what a receiver trusts (A17.3.1)
}

/// Extended transport headers (9.3), which begin at `at`. Gives where the payload begins.
std::size_t read_extended(Frame frame, std::size_t at, Packet& packet, Faults& faults) {
  if (packet.service == Service::kUd) {
    packet.qkey = static_cast<std::uint32_t>(big(frame, at, 4));
    packet.from_qpn = static_cast<std::uint32_t>(big(frame, at + 5, 3));
    if (frame[at + 4] != 0) faults.other.emplace_back("reserved bits of the DETH");
    at += 8;
  }
  if (has_reth(packet.operation) || packet.is_atomic()) {
    packet.va = big(frame, at, 8);
    packet.rkey = static_cast<std::uint32_t>(big(frame, at + 8, 4));
    if (!packet.is_atomic()) packet.length = static_cast<std::uint32_t>(big(frame, at + 12, 4));
    at += packet.is_atomic() ? 28 : 16;
  }
  if (packet.has_aeth()) {
    packet.syndrome = frame[at];
    packet.msn = static_cast<std::uint32_t>(big(frame, at + 1, 3));
    at += packet.operation == Operation::kAtomicAcknowledge ? 12 : 4;
  }
  return at + (has_immediate(packet.operation) || has_ieth(packet.operation) ? 4 : 0);
}

std::size_t extended_bytes(const Packet& packet) {
  std::size_t bytes = packet.service == Service::kUd ? 8 : 0;
  if (has_reth(packet.operation)) bytes += 16;
  if (packet.is_atomic()) bytes += 28;
  if (packet.has_aeth()) bytes += packet.operation == Operation::kAtomicAcknowledge ? 12 : 4;
  return bytes + (has_immediate(packet.operation) || has_ieth(packet.operation) ? 4 : 0);
}

/// 9.7.5.2, tables 45 to 48: what a syndrome may say.
void check_syndrome(const Packet& packet, Faults& faults) {
  constexpr std::uint8_t kNakCodes = 4;  // those of a reliable connection: sequence error to remote operational error
  const unsigned type = packet.syndrome >> 5, value = packet.syndrome & 0x1f;
  if (type != 0 && type != 1 && type != 3) faults.other.emplace_back("a reserved type of AETH syndrome");
  if (type == 3 && value >= kNakCodes) faults.other.emplace_back("a NAK code that a reliable connection has not");
  if (packet.operation != Operation::kAcknowledge && type != 0)
    faults.other.emplace_back("a Read response or atomic acknowledge that refuses");
}

}  // namespace

bool Packet::is_response() const {
  return service == Service::kRc && operation >= Operation::kReadResponseFirst &&
         operation <= Operation::kAtomicAcknowledge;
}
bool Packet::is_send() const { return operation <= Operation::kSendOnlyImmediate || has_ieth(operation); }
bool Packet::is_write() const {
  return operation >= Operation::kWriteFirst && operation <= Operation::kWriteOnlyImmediate;
}
bool Packet::is_read_response() const {
  return operation >= Operation::kReadResponseFirst && operation <= Operation::kReadResponseOnly;
}
bool Packet::is_atomic() const { return operation == Operation::kCompareSwap || operation == Operation::kFetchAdd; }
bool Packet::begins() const {
  switch (operation) {
    case Operation::kSendMiddle:
    case Operation::kSendLast:
    case Operation::kSendLastImmediate:
    case Operation::kSendLastInvalidate:
    case Operation::kWriteMiddle:
    case Operation::kWriteLast:
    case Operation::kWriteLastImmediate:
    case Operation::kReadResponseMiddle:
    case Operation::kReadResponseLast: return false;
    default: return true;
  }
}
bool Packet::ends() const {
  switch (operation) {
    case Operation::kSendFirst:
    case Operation::kSendMiddle:
    case Operation::kWriteFirst:
    case Operation::kWriteMiddle:
    case Operation::kReadResponseFirst:
    case Operation::kReadResponseMiddle: return false;
    default: return true;
  }
}
bool Packet::has_aeth() const { return is_response() && operation != Operation::kReadResponseMiddle; }

std::string describe(const Packet& packet) {
  static constexpr std::array kNames = {"SEND first",
                                        "SEND middle",
                                        "SEND last",
                                        "SEND last immediate",
                                        "SEND only",
                                        "SEND only immediate",
                                        "WRITE first",
                                        "WRITE middle",
                                        "WRITE last",
                                        "WRITE last immediate",
                                        "WRITE only",
                                        "WRITE only immediate",
                                        "READ request",
                                        "READ response first",
                                        "READ response middle",
                                        "READ response last",
                                        "READ response only",
                                        "acknowledge",
                                        "atomic acknowledge",
                                        "compare swap",
                                        "fetch add",
                                        "reserved",
                                        "SEND last invalidate",
                                        "SEND only invalidate"};
  const auto index = static_cast<std::size_t>(packet.operation);
  std::string text = packet.service == Service::kRc ? "RC " : packet.service == Service::kUc ? "UC " : "UD ";
  text += index < kNames.size() ? kNames[index] : "reserved";
  text += " to QP " + std::to_string(packet.dest_qpn) + ", PSN " + std::to_string(packet.psn);
  if (packet.has_aeth())
    text += ", syndrome " + std::to_string(packet.syndrome) + ", MSN " + std::to_string(packet.msn);
  return text;
}

std::optional<Packet> read(Frame frame, Faults& faults) {
  Packet packet;
  const auto outer = read_outer(frame, packet, faults);
  if (!outer) return std::nullopt;
  const std::size_t bth = outer->udp + kUdp;
  packet.source_port = static_cast<std::uint16_t>(big(frame, outer->udp, 2));
  if (outer->end > frame.size() || outer->end < bth + kBth + kIcrc) {
    faults.fatal.emplace_back("the length of the IP header is not that of the frame");
    return packet;
  }
  if (frame.size() != std::max(outer->end, kSmallest)) faults.other.emplace_back("bytes behind the IP packet");
  check_udp(frame, *outer, packet, faults);

  const std::uint8_t opcode = frame[bth], flags = frame[bth + 1];
  packet.service = static_cast<Service>(opcode >> 5);
  packet.operation = static_cast<Operation>(opcode & 0x1f);
  packet.solicited = flags >> 7 != 0;
  packet.pkey = static_cast<std::uint16_t>(big(frame, bth + 2, 2));
  packet.dest_qpn = static_cast<std::uint32_t>(big(frame, bth + 5, 3));
  packet.ack_request = frame[bth + 8] >> 7 != 0;
  packet.psn = static_cast<std::uint32_t>(big(frame, bth + 9, 3));
  const std::size_t pad = flags >> 4 & 3;
  if ((flags & 0xf) != 0) faults.fatal.emplace_back("a transport header version other than 0");
  if ((flags & 0x40) == 0) faults.other.emplace_back("MigReq 0");
  if (frame[bth + 4] != 0) faults.other.emplace_back("FECN, BECN or reserved bits of the BTH");
  if ((frame[bth + 8] & 0x7f) != 0) faults.other.emplace_back("reserved bits of the BTH in front of the PSN");
  if (icrc(frame.subspan(outer->ip, outer->end - outer->ip - kIcrc), outer->ipv6) !=
      big(frame, outer->end - kIcrc, kIcrc))
    faults.fatal.emplace_back("wrong ICRC");
  if (!known(packet.service, packet.operation)) {
    faults.fatal.emplace_back("an opcode that there is not");
    return packet;
  }
  const std::size_t payload = bth + kBth + extended_bytes(packet), end = outer->end - kIcrc;
  if (payload + pad > end || (end - payload) % 4 != 0) {
    faults.fatal.emplace_back("a length that the headers of its opcode do not fit");
    return packet;
  }
  read_extended(frame, bth + kBth, packet, faults);
  packet.bytes = end - payload - pad;
  if (!carries_payload(packet) && end != payload) faults.fatal.emplace_back("payload where the opcode has none");
  if (std::any_of(frame.begin() + static_cast<std::ptrdiff_t>(end - pad),
                  frame.begin() + static_cast<std::ptrdiff_t>(end), [](std::uint8_t byte) { return byte != 0; }))
    faults.other.emplace_back("pad bytes that are not 0");
  if (packet.has_aeth()) check_syndrome(packet, faults);
  if (packet.solicited &&
      (!packet.ends() || packet.is_response() || packet.is_atomic() || packet.operation == Operation::kReadRequest ||
       packet.operation == Operation::kWriteLast || packet.operation == Operation::kWriteOnly))
    faults.other.emplace_back("a solicited event that asks for none (9.2.3)");
  if (packet.ack_request && packet.service != Service::kRc)
    faults.other.emplace_back("AckReq where nothing is answered");
  if (packet.ack_request && packet.is_response()) faults.other.emplace_back("AckReq in a response");
  return packet;
}

}  // namespace rnic::wire_check
