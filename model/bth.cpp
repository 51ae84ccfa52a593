#include "model/bth.hpp"

#include <algorithm>
#include <array>

namespace rnic::model {
namespace {

constexpr std::size_t kIp = 14;
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kBthBytes = 12;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint16_t kRocePort = 4791;
constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint16_t kIpv6 = 0x86DD;
constexpr std::uint16_t kVlan = 0x8100;
constexpr std::size_t kTagBytes = 4;

struct Name {
  std::string_view name;
  std::uint8_t opcode;
};

/// InfiniBand specification 9.2.1, table 38; annex A17.9.3 for the congestion notification packet.
constexpr std::array<Name, 38> kNames{{
    {"RC_SEND_FIRST", 0x00},
    {"RC_SEND_MIDDLE", 0x01},
    {"RC_SEND_LAST", 0x02},
    {"RC_SEND_LAST_WITH_IMMEDIATE", 0x03},
    {"RC_SEND_ONLY", 0x04},
    {"RC_SEND_ONLY_WITH_IMMEDIATE", 0x05},
    {"RC_RDMA_WRITE_FIRST", 0x06},
    {"RC_RDMA_WRITE_MIDDLE", 0x07},
    {"RC_RDMA_WRITE_LAST", 0x08},
    {"RC_RDMA_WRITE_LAST_WITH_IMMEDIATE", 0x09},
    {"RC_RDMA_WRITE_ONLY", 0x0A},
    {"RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 0x0B},
    {"RC_RDMA_READ_REQUEST", 0x0C},
    {"RC_RDMA_READ_RESPONSE_FIRST", 0x0D},
    {"RC_RDMA_READ_RESPONSE_MIDDLE", 0x0E},
    {"RC_RDMA_READ_RESPONSE_LAST", 0x0F},
    {"RC_RDMA_READ_RESPONSE_ONLY", 0x10},
    {"RC_ACKNOWLEDGE", 0x11},
    {"RC_ATOMIC_ACKNOWLEDGE", 0x12},
    {"RC_COMPARE_SWAP", 0x13},
    {"RC_FETCH_ADD", 0x14},
    {"RC_SEND_LAST_WITH_INVALIDATE", 0x16},
    {"RC_SEND_ONLY_WITH_INVALIDATE", 0x17},
    {"UC_SEND_FIRST", 0x20},
    {"UC_SEND_MIDDLE", 0x21},
    {"UC_SEND_LAST", 0x22},
    {"UC_SEND_LAST_WITH_IMMEDIATE", 0x23},
    {"UC_SEND_ONLY", 0x24},
    {"UC_SEND_ONLY_WITH_IMMEDIATE", 0x25},
    {"UC_RDMA_WRITE_FIRST", 0x26},
    {"UC_RDMA_WRITE_MIDDLE", 0x27},
    {"UC_RDMA_WRITE_LAST", 0x28},
    {"UC_RDMA_WRITE_LAST_WITH_IMMEDIATE", 0x29},
    {"UC_RDMA_WRITE_ONLY", 0x2A},
    {"UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 0x2B},
    {"UD_SEND_ONLY", 0x64},
    {"UD_SEND_ONLY_WITH_IMMEDIATE", 0x65},
    {"CNP", 0x81},
}};

std::uint32_t big(std::span<const std::uint8_t> frame, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | frame[at + i];
  return value;
}

struct IpHeader {
  std::size_t at;
  bool ipv6;
};

/// The IP header behind the Ethernet header and at most one VLAN tag, when the whole smallest one of its type is there.
std::optional<IpHeader> find_ip(std::span<const std::uint8_t> frame) {
  if (frame.size() < kIp) return std::nullopt;
  const bool tagged = frame.size() >= kIp + kTagBytes && big(frame, kIp - 2, 2) == kVlan;
  const std::size_t at = kIp + (tagged ? kTagBytes : 0);
  const std::uint32_t type = big(frame, at - 2, 2);
  if (type == kIpv4 && frame.size() >= at + 20 && frame[at] >> 4 == 4) return IpHeader{at, false};
  if (type == kIpv6 && frame.size() >= at + 40 && frame[at] >> 4 == 6) return IpHeader{at, true};
  return std::nullopt;
}

}  // namespace

std::optional<RocePacket> find_roce_packet(std::span<const std::uint8_t> frame) {
  const auto ip = find_ip(frame);
  if (!ip || frame[ip->at + (ip->ipv6 ? 6 : 9)] != kUdp) return std::nullopt;
  const std::size_t udp = ip->at + (ip->ipv6 ? 40u : 4u * (frame[ip->at] & 15u));
  const std::size_t bth = udp + kUdpBytes;
  if (frame.size() < bth + kBthBytes || big(frame, udp + 2, 2) != kRocePort) return std::nullopt;
  return RocePacket{frame[bth], big(frame, bth + 5, 3), big(frame, bth + 9, 3)};
}

std::optional<std::uint8_t> opcode_by_name(std::string_view name) {
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const Name& entry) { return entry.name == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->opcode;
}

std::vector<std::string> opcode_names() {
  std::vector<std::string> names;
  for (const auto& entry : kNames) names.emplace_back(entry.name);
  return names;
}

bool mark_congestion(std::span<std::uint8_t> frame, bool only_capable) {
  const auto ip = find_ip(frame);
  if (!ip) return false;
  const std::span<std::uint8_t> header = frame.subspan(ip->at);
  // Traffic class: the second byte of IPv4; the low half of the first byte and the high half of the second of IPv6.
  const int shift = ip->ipv6 ? 4 : 0;
  if (only_capable && (header[1] >> shift & 3) == 0) return false;
  header[1] = static_cast<std::uint8_t>(header[1] | 3 << shift);
  if (ip->ipv6) return true;
  const std::size_t bytes = 4u * (header[0] & 15u);
  if (bytes < 20 || header.size() < bytes) return true;  // no header whose checksum could be right
  header[10] = header[11] = 0;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes; i += 2) sum += big(header, i, 2);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  header[10] = static_cast<std::uint8_t>(~sum >> 8);
  header[11] = static_cast<std::uint8_t>(~sum);
  return true;
}

}  // namespace rnic::model
