#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// RoCEv2 frames byte by byte, written from the specification and not from the RTL or the generated headers, so that
/// tests have a second opinion and the fuzzer can lie.
namespace rnic::roce {

using Bytes = std::vector<std::uint8_t>;

/// Bytes of the headers that have one size (IEEE 802.3, RFC 768, InfiniBand specification 9.2), and of the ICRC.
inline constexpr std::size_t kEthernetBytes = 14, kUdpBytes = 8, kBthBytes = 12, kIcrcBytes = 4;
/// EtherType and bytes of a VLAN tag (IEEE 802.1Q 9).
inline constexpr std::uint16_t kVlan = 0x8100;
inline constexpr std::size_t kVlanBytes = 4;
inline constexpr std::uint32_t kPsnMask = 0xffffff;

/// Bitwise CRC-32 (IEEE 802.3, reflected); `state` is the register, ones at the start.
inline std::uint32_t crc32_step(std::uint32_t state, std::uint8_t byte) {
  state ^= byte;
  for (int i = 0; i < 8; ++i) state = state & 1 ? state >> 1 ^ 0xEDB88320u : state >> 1;
  return state;
}

/// Bytes of an IPv4 header, options included; 20 where the header lies about it.
inline std::size_t ipv4_header_bytes(std::span<const std::uint8_t> header) {
  const std::size_t bytes = 4u * (header[0] & 15u);
  return bytes < 20 || bytes > header.size() ? 20 : bytes;
}

/// ICRC of an IP packet without ICRC (InfiniBand specification 7.8.1, A17.3.3), as the number whose low byte goes first
/// on the wire.
inline std::uint32_t icrc(std::span<const std::uint8_t> ip) {
  Bytes b(ip.begin(), ip.end());
  const auto ones = [&](std::size_t at, std::uint8_t bits = 0xff) {
    if (at < b.size()) b[at] |= bits;
  };
  const bool ipv6 = !b.empty() && b[0] >> 4 == 6;
  const std::size_t udp = ipv6 ? 40 : ipv4_header_bytes(b);
  if (ipv6) {
    ones(0, 0x0f);
    for (const std::size_t at : {1, 2, 3, 7}) ones(at);
  } else {
    for (const std::size_t at : {1, 8, 10, 11}) ones(at);
  }
  for (const std::size_t at : {udp + 6, udp + 7, udp + 12}) ones(at);
  std::uint32_t state = ~0u;
  for (int i = 0; i < 8; ++i) state = crc32_step(state, 0xff);
  for (const auto byte : b) state = crc32_step(state, byte);
  return ~state;
}

inline void append_big(Bytes& to, std::uint64_t value, int bytes) {
  for (int i = bytes; i-- > 0;) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
inline std::uint64_t read_big(std::span<const std::uint8_t> from, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | from[at + static_cast<std::size_t>(i)];
  return value;
}

/// Bytes of the Ethernet header, with the VLAN tag if there is one.
inline std::size_t ethernet_bytes(std::span<const std::uint8_t> frame) {
  return kEthernetBytes + (read_big(frame, 12, 2) == kVlan ? kVlanBytes : 0);
}

/// RFC 1071 over bytes behind others whose sum is `sum`; an odd byte at the end has a zero behind it.
inline std::uint16_t internet_checksum(std::span<const std::uint8_t> bytes, std::uint64_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += std::uint64_t{bytes[i]} << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

inline std::uint16_t ipv4_checksum(std::span<const std::uint8_t> header) {
  return internet_checksum(header.first(ipv4_header_bytes(header)));
}

/// What a RoCEv2 frame says. IPv4 addresses are the last four bytes of source_ip and dest_ip.
struct RoceFields {
  bool ipv6 = false;
  std::uint64_t dest_mac = 0, source_mac = 0;
  std::optional<std::uint16_t> vlan_tci;  ///< PCP, DEI and VID of a VLAN tag
  std::array<std::uint8_t, 16> source_ip{}, dest_ip{};
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t flow_label = 0;
  std::uint16_t udp_source_port = 0xC000, pkey = 0xFFFF;
  std::uint8_t opcode = 0;
  bool solicited = false, ack_req = false;
  bool migreq = true;  ///< The sender's state is Migrated (17.2.8): it has no alternate path
  std::uint32_t dest_qpn = 0, psn = 0;
  Bytes ext, payload;
};

inline Bytes reth(std::uint64_t va, std::uint32_t rkey, std::uint32_t length) {
  Bytes b;
  append_big(b, va, 8);
  append_big(b, rkey, 4);
  append_big(b, length, 4);
  return b;
}
/// Receive WQEs that the credit codes 0 to 30 of an AETH stand for (InfiniBand specification 9.7.7.2.2, table 46).
inline constexpr std::array<std::uint16_t, 31> kCredits = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
/// The code of a responder that does not count.
inline constexpr std::uint8_t kNoCredits = 31;

inline Bytes aeth(std::uint8_t syndrome, std::uint32_t msn) {
  Bytes b;
  append_big(b, syndrome, 1);
  append_big(b, msn, 3);
  return b;
}

inline Bytes atomic_eth(std::uint64_t va, std::uint32_t rkey, std::uint64_t swap_add, std::uint64_t compare) {
  Bytes b;
  append_big(b, va, 8);
  append_big(b, rkey, 4);
  append_big(b, swap_add, 8);
  append_big(b, compare, 8);
  return b;
}

/// A congestion notification (annex A17.9.3): BTH, then 16 reserved bytes, and no payload.
inline constexpr std::uint8_t kCongestionNotification = 0x81;

/// Bytes between BTH and payload of an opcode, none for a reserved one of RC, or -1 for one that is neither of RC, UC
/// or UD (9.2.1, table 38) nor a congestion notification. An AtomicAckETH (0x12) counts as payload.
inline int extended_bytes(std::uint8_t opcode) {
  constexpr int kReth = 16, kAeth = 4, kAtomic = 28, kImm = 4, kInvalidate = 4, kDeth = 8;
  static const std::array<int, 24> rc = {0,     0,     0,     kImm,         0,       kImm,  kReth,       0,
                                         0,     kImm,  kReth, kReth + kImm, kReth,   kAeth, 0,           kAeth,
                                         kAeth, kAeth, kAeth, kAtomic,      kAtomic, 0,     kInvalidate, kInvalidate};
  if (opcode < rc.size()) return rc[opcode];
  if (opcode < 0x20) return 0;
  if (opcode >= 0x20 && opcode <= 0x2b) return rc[opcode - 0x20u];
  if (opcode == 0x64) return kDeth;
  if (opcode == 0x65) return kDeth + kImm;
  if (opcode == kCongestionNotification) return 16;
  return -1;
}

/// The frame without padding to 60 bytes and without FCS.
inline Bytes roce_frame(const RoceFields& f) {
  const auto pad = static_cast<std::uint8_t>((4 - f.payload.size() % 4) % 4);
  const auto udp_length = 8 + 12 + f.ext.size() + f.payload.size() + pad + 4;
  Bytes b;
  append_big(b, f.dest_mac, 6);
  append_big(b, f.source_mac, 6);
  if (f.vlan_tci) append_big(b, std::uint32_t{kVlan} << 16 | *f.vlan_tci, 4);
  append_big(b, f.ipv6 ? 0x86DD : 0x0800, 2);
  const std::size_t ip = b.size();
  if (f.ipv6) {
    append_big(b, 6ull << 28 | static_cast<std::uint32_t>(f.traffic_class) << 20 | f.flow_label, 4);
    append_big(b, udp_length, 2);
    b.push_back(17);
    b.push_back(f.hop_limit);
    b.insert(b.end(), f.source_ip.begin(), f.source_ip.end());
    b.insert(b.end(), f.dest_ip.begin(), f.dest_ip.end());
  } else {
    append_big(b, 0x45, 1);
    append_big(b, f.traffic_class, 1);
    append_big(b, udp_length + 20, 2);
    append_big(b, 0x00004000, 4);
    append_big(b, f.hop_limit, 1);
    append_big(b, 17, 1);
    append_big(b, 0, 2);
    b.insert(b.end(), f.source_ip.begin() + 12, f.source_ip.end());
    b.insert(b.end(), f.dest_ip.begin() + 12, f.dest_ip.end());
    const auto checksum = ipv4_checksum(std::span(b).subspan(ip));
    b[ip + 10] = static_cast<std::uint8_t>(checksum >> 8);
    b[ip + 11] = static_cast<std::uint8_t>(checksum);
  }
  append_big(b, f.udp_source_port, 2);
  append_big(b, 4791, 2);
  append_big(b, udp_length, 2);
  append_big(b, 0, 2);
  append_big(b, f.opcode, 1);
  append_big(b, static_cast<std::uint8_t>(f.solicited << 7 | f.migreq << 6 | pad << 4), 1);
  append_big(b, f.pkey, 2);
  append_big(b, f.dest_qpn, 4);
  append_big(b, static_cast<std::uint32_t>(f.ack_req) << 31 | f.psn, 4);
  b.insert(b.end(), f.ext.begin(), f.ext.end());
  b.insert(b.end(), f.payload.begin(), f.payload.end());
  b.insert(b.end(), pad, 0);
  const auto crc = icrc(std::span(b).subspan(ip));
  for (int i = 0; i < 4; ++i) b.push_back(static_cast<std::uint8_t>(crc >> (8 * i)));
  return b;
}

/// Sets the ICRC (and the IPv4 header checksum, unless told not to) right again after a field of a frame without
/// trailing bytes was changed.
inline void repair(Bytes& frame, bool checksum = true) {
  const std::size_t ip = ethernet_bytes(frame);
  if (checksum && frame[ip - 2] == 0x08) {
    frame[ip + 10] = frame[ip + 11] = 0;
    const auto sum = ipv4_checksum(std::span(frame).subspan(ip));
    frame[ip + 10] = static_cast<std::uint8_t>(sum >> 8);
    frame[ip + 11] = static_cast<std::uint8_t>(sum);
  }
  const auto crc = icrc(std::span(frame).subspan(ip, frame.size() - ip - kIcrcBytes));
  for (std::size_t i = 0; i < 4; ++i) frame[frame.size() - 4 + i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

inline Bytes from_hex(const std::string& text) {
  Bytes b;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    b.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return b;
}

}  // namespace rnic::roce
