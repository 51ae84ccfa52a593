#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace rnic {

/// Data segments that a WQE of any queue has room for, however few are asked for (decisions 37); but those of the
/// sends of RawPacket, which no process has.
constexpr std::uint32_t kMinSegments = 4;

/// Exponent of the smallest ring of `depth` slots; 0 for none or one.
constexpr unsigned ring_log_depth(std::uint32_t depth) {
  return static_cast<unsigned>(std::bit_width(std::max(depth, 1U) - 1));
}

}  // namespace rnic
