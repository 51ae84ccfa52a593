#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "testbench/world.hpp"

namespace rnic::testbench {

/// What a machine and a network may be, drawn from one seed.
struct DrawnWorld {
  /// Of each host by itself: maximum payload and read request, read completion boundary, extended tags, width of device
  /// addresses, latency and jitter of PCI Express, reads that are passed, answers that are late and cut anywhere,
  /// bursts that leave in pieces, clock of the NIC (up to 200 ppm, any phase), credits of what it sends. Of both: rate,
  /// delay and jitter of the wire, first PSNs (near their wrap one time in four).
  WorldOptions options;
  std::optional<std::uint32_t> mtu;  ///< Path MTU, bytes
  /// To be added to the code of an ACK time-out (InfiniBand specification 9.7.6.1.3) that is long enough at 100 Gb/s.
  std::uint8_t timeout_shift = 0;
  std::vector<std::string> text;  ///< What was drawn, a line a subject
};

/// Faults, files and the seed of `base` stay.
[[nodiscard]] DrawnWorld draw_world(std::uint64_t seed, const WorldOptions& base);

}  // namespace rnic::testbench
