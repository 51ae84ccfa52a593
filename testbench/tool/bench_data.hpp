#pragma once

#include <cstdint>
#include <span>

namespace rnic::testbench {

/// What the NIC has written when a request completes may be on its way through PCI Express so long, nanoseconds.
inline constexpr std::uint64_t kInFlightNs = 5'000;

/// Fills memory of a benchmark with numbers that depend on the host and on the whole offset (a multiple of 8 bytes), so
/// that nothing that was moved from or to a wrong place, or not at all, looks right.
void fill_bench_data(std::span<std::uint8_t> memory, std::uint64_t host);

/// Throws std::runtime_error that names the first byte that differs. Both are of one length.
void require_moved(std::span<const std::uint8_t> from, std::span<const std::uint8_t> to);

}  // namespace rnic::testbench
