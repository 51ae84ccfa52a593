#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rnic::test {

/// One field of a layout: its place, and how the C++ accessors read it out of a byte buffer.
struct FieldProbe {
  std::string_view name;
  std::size_t layout_bytes;
  std::size_t offset;  ///< Of its lowest bit
  std::size_t width;
  bool big;
  std::vector<std::uint8_t> (*read)(std::span<const std::uint8_t>);
};

/// A layout as the C++ accessors read and write it.
struct LayoutProbe {
  std::string_view name;
  std::size_t bits;
  bool big;
  /// What comes out when `bytes` are decoded and encoded again.
  std::vector<std::uint8_t> (*recode)(std::span<const std::uint8_t> bytes);
};

template <typename Layout>
std::vector<std::uint8_t> recode_layout(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> out(Layout::kBytes, 0xA5);
  Layout::decode(bytes.first<Layout::kBytes>()).encode(std::span(out).template first<Layout::kBytes>());
  return out;
}

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
