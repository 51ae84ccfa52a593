#include "testbench/wire_check/icrc.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace rnic::wire_check {
namespace {

constexpr std::size_t kMasked = 8 + 40 + 8 + 12;  // link header, IPv6, UDP, BTH

}  // namespace

std::uint32_t icrc(std::span<const std::uint8_t> packet, bool ipv6) {
  // What changes on the way counts as ones: the link header that there is not, in IPv4 type of service, time to live
  // and checksum, in IPv6 traffic class, flow label and hop limit; the UDP checksum; FECN, BECN and what is beside.
  std::array<std::uint8_t, kMasked> head{};
  const std::size_t ip = ipv6 ? 40 : 20, covered = std::min(packet.size(), ip + 8 + 12);
  std::fill_n(head.begin(), 8, std::uint8_t{0xff});
  std::copy_n(packet.begin(), covered, head.begin() + 8);
  std::uint8_t* const header = head.data() + 8;
  if (ipv6) {
    header[0] |= 0x0f;
    header[1] = header[2] = header[3] = header[7] = 0xff;
  } else {
    header[1] = header[8] = header[10] = header[11] = 0xff;
  }
  header[ip + 6] = header[ip + 7] = 0xff;
  header[ip + 8 + 4] = 0xff;
  const std::uint32_t front = libdeflate_crc32(0, head.data(), 8 + covered);
  const std::uint32_t crc = libdeflate_crc32(front, packet.data() + covered, packet.size() - covered);
  // The lowest byte is first on the wire.
  return crc << 24 | (crc & 0xff00) << 8 | (crc >> 8 & 0xff00) | crc >> 24;
}

}  // namespace rnic::wire_check
