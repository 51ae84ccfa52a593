#include "model/reference/crc.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace rnic::reference {
namespace {

constexpr std::size_t kStep = 16;

/// Division by the polynomial of Ethernet, least significant bit first (IEEE 802.3 clause 3.2.9): the remainder of a
/// byte that `n` bytes of zero follow, for n below kStep.
constexpr std::array<std::array<std::uint32_t, 256>, kStep> kRemainders = [] {
  std::array<std::array<std::uint32_t, 256>, kStep> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t rest = i;
    for (auto& table : tables) {
      for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
      table[i] = rest;
    }
  }
  return tables;
}();

std::uint32_t take(std::uint32_t rest, std::uint8_t byte) { return rest >> 8 ^ kRemainders[0][(rest ^ byte) & 0xff]; }

/// Bytes that nothing changes, kStep at a time: the remainder so far belongs to the first four of them.
std::uint32_t take(std::uint32_t rest, std::span<const std::uint8_t> bytes) {
  for (; bytes.size() >= kStep; bytes = bytes.subspan(kStep)) {
    std::array<std::uint8_t, kStep> step;
    std::copy_n(bytes.begin(), kStep, step.begin());
    for (std::size_t i = 0; i < 4; ++i) step[i] ^= static_cast<std::uint8_t>(rest >> 8 * i);
    rest = 0;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kStep; ++i) rest ^= kRemainders[kStep - 1 - i][step[i]];
  }
  for (const std::uint8_t byte : bytes) rest = take(rest, byte);
  return rest;
}

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
  const std::size_t plain = std::min(end, ip + kVariant);
  std::uint32_t rest = 0xffffffff;
  for (int i = 0; i < 8; ++i) rest = take(rest, 0xff);
  for (std::size_t i = ip; i < plain; ++i) {
    std::uint8_t byte = frame[i];
    if (is_variant(ipv6, i - ip)) byte = 0xff;
    if (ipv6 && i == ip) byte |= 0x0f;  // the upper half of the traffic class
    rest = take(rest, byte);
  }
  rest = take(rest, std::span(frame).subspan(plain, end - plain));
  return ~rest;
}

std::uint16_t ipv4_checksum(const Bytes& frame, std::size_t ip) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(big(frame, ip + i, 2));
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace rnic::reference
