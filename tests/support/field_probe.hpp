#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rnic::test {

/// Reads one field of a layout out of a byte buffer with the C++ accessors.
struct FieldProbe {
  std::string_view name;
  std::vector<std::uint8_t> (*read)(std::span<const std::uint8_t>);
};

inline std::vector<std::uint8_t> field_bytes(std::uint64_t value, bool) {
  std::vector<std::uint8_t> bytes(8);
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return bytes;
}

/// A wide field as a little-endian number; `big` says that the array starts with the most significant byte.
template <std::size_t N>
std::vector<std::uint8_t> field_bytes(const std::array<std::uint8_t, N>& value, bool big) {
  std::vector<std::uint8_t> bytes(value.begin(), value.end());
  if (big) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

}  // namespace rnic::test
