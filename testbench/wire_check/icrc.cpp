#include "testbench/wire_check/icrc.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace rnic::wire_check {
namespace {

constexpr std::size_t kSlices = 16, kMasked = 8 + 40 + 8 + 12;  // link header, IPv6, UDP, BTH

using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

/// Of the CRC of Ethernet, bit-reversed: table k is that of a byte with k bytes of zeros behind it.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
    tables[0][byte] = rest;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[slice][byte] = tables[slice - 1][byte] >> 8 ^ tables[0][tables[slice - 1][byte] & 0xff];
  return tables;
}
constexpr Tables kTables = make_tables();

std::uint32_t word(const std::uint8_t* at) {
  return at[0] | static_cast<std::uint32_t>(at[1]) << 8 | static_cast<std::uint32_t>(at[2]) << 16 |
         static_cast<std::uint32_t>(at[3]) << 24;
}

std::uint32_t run(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  const std::uint8_t* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    const std::array<std::uint32_t, kSlices / 4> words = {crc ^ word(at), word(at + 4), word(at + 8), word(at + 12)};
    crc = 0;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][words[i / 4] >> 8 * (i % 4) & 0xff];
  }
  for (; left != 0; --left) crc = crc >> 8 ^ kTables[0][(crc ^ *at++) & 0xff];
  return crc;
}

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
  const std::uint32_t crc = ~run(run(~std::uint32_t{0}, {head.data(), 8 + covered}), packet.subspan(covered));
  // The lowest byte is first on the wire.
  return crc << 24 | (crc & 0xff00) << 8 | (crc >> 8 & 0xff00) | crc >> 24;
}

}  // namespace rnic::wire_check
