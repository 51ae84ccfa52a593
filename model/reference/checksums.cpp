#include "model/reference/checksums.hpp"

#include <optional>

#include "model/reference/packet.hpp"

namespace rnic::reference {
namespace {

constexpr std::uint64_t kTag = 0x8100, kIpv4 = 0x0800, kIpv6 = 0x86dd, kTcp = 6, kUdp = 17;

/// Bytes of a frame that have a checksum among them, and what is added to their sum.
struct Covered {
  std::size_t from{}, to{}, place{};
  std::uint64_t pseudo{};  ///< Pseudo header (RFC 768, 793; RFC 8200 8.1)
  bool may_be_absent{};    ///< UDP: 0 says that there is none

  /// Folded: 0xffff when the checksum is right.
  [[nodiscard]] std::uint64_t sum(const Bytes& frame) const {
    std::uint64_t sum = pseudo;
    for (std::size_t i = from; i < to; ++i) sum += std::uint64_t{frame[i]} << ((i - from) % 2 == 0 ? 8 : 0);
    while (sum > 0xffff) sum = (sum >> 16) + (sum & 0xffff);
    return sum;
  }
  [[nodiscard]] bool is_right(const Bytes& frame) const {
    return sum(frame) == 0xffff && !(may_be_absent && big(frame, place, 2) == 0);
  }
  void insert(Bytes& frame) const {
    frame[place] = frame[place + 1] = 0;
    std::uint64_t checksum = ~sum(frame) & 0xffff;
    if (may_be_absent && checksum == 0) checksum = 0xffff;
    frame[place] = static_cast<std::uint8_t>(checksum >> 8);
    frame[place + 1] = static_cast<std::uint8_t>(checksum);
  }
};

/// What can be read of a frame.
struct IpPacket {
  std::optional<Covered> header, segment;

  explicit IpPacket(const Bytes& frame) {
    const bool tagged = frame.size() >= kEthernetHeader + 4 && big(frame, 12, 2) == kTag;
    const std::size_t ip = kEthernetHeader + (tagged ? 4 : 0);
    if (frame.size() < ip + 20) return;
    const std::uint64_t type = big(frame, ip - 2, 2);
    if (type == kIpv4) read_ipv4(frame, ip);
    if (type == kIpv6) read_ipv6(frame, ip);
  }

 private:
  void read_ipv4(const Bytes& frame, std::size_t ip) {
    constexpr std::uint64_t kFragment = 0x3fff;  // more fragments, fragment offset
    const std::size_t header_bytes = (frame[ip] & 0xfu) * 4u, total = big(frame, ip + 2, 2);
    if (frame[ip] >> 4 != 4 || header_bytes < 20 || total < header_bytes || total > frame.size() - ip) return;
    header = {ip, ip + header_bytes, ip + 10, 0, false};
    if ((big(frame, ip + 6, 2) & kFragment) == 0)
      read_segment(frame, frame[ip + 9], ip + 12, ip + 20, ip + header_bytes, ip + total);
  }
  void read_ipv6(const Bytes& frame, std::size_t ip) {
    if (frame.size() < ip + 40 || frame[ip] >> 4 != 6) return;
    const std::size_t begin = ip + 40, bytes = big(frame, ip + 4, 2);
    if (bytes <= frame.size() - begin) read_segment(frame, frame[ip + 6], ip + 8, ip + 40, begin, begin + bytes);
  }
  void read_segment(const Bytes& frame, std::uint64_t protocol, std::size_t addresses, std::size_t addresses_end,
                    std::size_t begin, std::size_t end) {
    const std::size_t bytes = end - begin;
    const bool is_tcp = protocol == kTcp && bytes >= 20,
               is_udp = protocol == kUdp && bytes >= 8 && big(frame, begin + 4, 2) == bytes;
    if (!is_tcp && !is_udp) return;
    std::uint64_t pseudo = protocol + bytes;
    for (std::size_t i = addresses; i < addresses_end; i += 2) pseudo += big(frame, i, 2);
    segment = {begin, end, begin + (is_tcp ? 16 : 6), pseudo, is_udp};
  }
};

}  // namespace

FrameChecksums look_at_checksums(const Bytes& frame) {
  const IpPacket packet(frame);
  return {packet.header && packet.header->is_right(frame), packet.segment && packet.segment->is_right(frame)};
}

void insert_checksums(Bytes& frame) {
  const IpPacket packet(frame);
  if (packet.header) packet.header->insert(frame);
  if (packet.segment) packet.segment->insert(frame);
}

}  // namespace rnic::reference
