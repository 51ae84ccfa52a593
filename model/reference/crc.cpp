#include "model/reference/crc.hpp"

#include <array>

namespace rnic::reference {
namespace {

/// Division by the polynomial of Ethernet, least significant bit first (IEEE 802.3 clause 3.2.9).
constexpr std::array<std::uint32_t, 256> kRemainders = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
    table[i] = rest;
  }
  return table;
}();

/// What routers change: offsets from the IP header.
bool is_variant(bool ipv6, std::size_t offset) {
  const std::size_t udp = ipv6 ? 40 : 20, bth = udp + 8;
  if (offset == udp + 6 || offset == udp + 7 || offset == bth + 4) return true;
  if (ipv6) return (offset >= 1 && offset <= 3) || offset == 7;
  return offset == 1 || offset == 8 || offset == 10 || offset == 11;
}

}  // namespace

std::uint32_t invariant_crc(const Bytes& frame, std::size_t ip, std::size_t end) {
  const bool ipv6 = frame[ip] >> 4 == 6;
  std::uint32_t rest = 0xffffffff;
  const auto take = [&rest](std::uint8_t byte) { rest = rest >> 8 ^ kRemainders[(rest ^ byte) & 0xff]; };
  for (int i = 0; i < 8; ++i) take(0xff);
  for (std::size_t i = ip; i < end; ++i) {
    std::uint8_t byte = frame[i];
    if (i - ip < 60 && is_variant(ipv6, i - ip)) byte = 0xff;
    if (ipv6 && i == ip) byte |= 0x0f;  // the upper half of the traffic class
    take(byte);
  }
  return ~rest;
}

std::uint16_t ipv4_checksum(const Bytes& frame, std::size_t ip) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(big(frame, ip + i, 2));
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace rnic::reference
