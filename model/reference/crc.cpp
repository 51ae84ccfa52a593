#include "model/reference/crc.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <array>

namespace rnic::reference {
namespace {

constexpr std::size_t kLink = 8;
constexpr std::size_t kVariant = 60;

/// What routers change: offsets from the IP header, below kVariant.
bool is_variant(bool ipv6, std::size_t offset) {
  const std::size_t udp = ipv6 ? 40 : 20, bth = udp + 8;
  if (offset == udp + 6 || offset == udp + 7 || offset == bth + 4) return true;
  if (ipv6) return (offset >= 1 && offset <= 3) || offset == 7;
  return offset == 1 || offset == 8 || offset == 10 || offset == 11;
}

}  // namespace

std::uint32_t invariant_crc(const Bytes& frame, std::size_t ip, std::size_t end) {
  const bool ipv6 = frame[ip] >> 4 == 6;
  const std::size_t variant = std::min(end - ip, kVariant);
  std::array<std::uint8_t, kLink + kVariant> head;
  head.fill(0xff);
  for (std::size_t i = 0; i < variant; ++i) {
    if (!is_variant(ipv6, i)) head[kLink + i] = frame[ip + i];
  }
  if (ipv6) head[kLink] |= 0x0f;  // the upper half of the traffic class
  const std::uint32_t crc = libdeflate_crc32(0, head.data(), kLink + variant);
  return libdeflate_crc32(crc, frame.data() + ip + variant, end - ip - variant);
}

std::uint16_t ipv4_checksum(const Bytes& frame, std::size_t ip) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(big(frame, ip + i, 2));
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace rnic::reference
