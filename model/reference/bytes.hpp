#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Fields in bytes. Structures in host memory are little-endian and count bits from bit 0 of byte 0; what is on the
/// wire is big-endian (docs/host_interface.md).
namespace rnic::reference {

using Bytes = std::vector<std::uint8_t>;
using Address = std::array<std::uint8_t, 16>;  ///< IP address in network order; IPv4 as ::ffff:a.b.c.d

/// Bits `low` to `low + width - 1` of a little-endian structure; width 1 to 64. Bits past its end are 0.
inline std::uint64_t field(const Bytes& bytes, std::size_t low, unsigned width) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < width; ++i) {
    const std::size_t bit = low + i;
    if (bit / 8 < bytes.size()) value |= static_cast<std::uint64_t>(bytes[bit / 8] >> (bit % 8) & 1) << i;
  }
  return value;
}

/// The inverse: the structure must be long enough; what was there is replaced.
inline void put_field(Bytes& bytes, std::size_t low, unsigned width, std::uint64_t value) {
  for (unsigned i = 0; i < width; ++i) {
    auto& byte = bytes.at((low + i) / 8);
    const auto mask = static_cast<std::uint8_t>(1u << ((low + i) % 8));
    byte = static_cast<std::uint8_t>((value >> i & 1) != 0 ? byte | mask : byte & ~mask);
  }
}

/// `size` whole bytes at `offset`, least significant first.
inline std::uint64_t little(const Bytes& bytes, std::size_t offset, unsigned size) {
  std::uint64_t value = 0;
  for (unsigned i = size; i-- > 0;) value = value << 8 | (offset + i < bytes.size() ? bytes[offset + i] : 0);
  return value;
}

/// `size` whole bytes at `offset`, most significant first. The bytes must be there.
inline std::uint64_t big(const Bytes& bytes, std::size_t offset, unsigned size) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i) value = value << 8 | bytes.at(offset + i);
  return value;
}

/// Appends `size` bytes, most significant first.
inline void append_big(Bytes& bytes, std::uint64_t value, unsigned size) {
  for (unsigned i = size; i-- > 0;) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

/// Appends `size` bytes, least significant first.
inline void append_little(Bytes& bytes, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

inline Address address_at(const Bytes& bytes, std::size_t offset) {
  Address address{};
  for (std::size_t i = 0; i < address.size() && offset + i < bytes.size(); ++i) address[i] = bytes[offset + i];
  return address;
}

/// ::ffff:0:0/96 (RFC 4291 2.5.5.2).
inline bool is_ipv4(const Address& address) {
  for (std::size_t i = 0; i < 10; ++i)
    if (address[i] != 0) return false;
  return address[10] == 0xff && address[11] == 0xff;
}

/// Packet sequence numbers and queue pair numbers have 24 bits.
inline constexpr std::uint32_t kMask24 = 0xffffff;
/// How far `to` is ahead of `from`, modulo 2^24.
inline std::uint32_t ahead(std::uint32_t to, std::uint32_t from) { return (to - from) & kMask24; }

}  // namespace rnic::reference
