#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// What the examples send, so that who receives sees that it is that, and all of it.
namespace examples {

/// The byte at a place of message `number`: other in the next message, and other a line, a packet or a page further on.
[[nodiscard]] inline std::uint8_t pattern_at(std::size_t place, std::uint32_t number) {
  return static_cast<std::uint8_t>(place * 7 + (place >> 6) * 13 + (place >> 12) * 5 + number * 31 + 1);
}

inline void fill(std::span<std::uint8_t> bytes, std::uint32_t number) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_at(i, number);
}

[[nodiscard]] inline bool holds(std::span<const std::uint8_t> bytes, std::uint32_t number) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern_at(i, number)) return false;
  return true;
}

}  // namespace examples
