#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "driver/generated/host_interface.hpp"

namespace rnic {

/// What happened to a queue pair, by hw::QpCounter. Each count stays at 2^32 - 1.
struct QpCounters {
  std::array<std::uint32_t, hw::kQpCounters> counts{};
  [[nodiscard]] std::uint32_t operator[](hw::QpCounter which) const { return counts[static_cast<std::size_t>(which)]; }
};

}  // namespace rnic
