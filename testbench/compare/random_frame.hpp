#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/random.hpp"

namespace rnic::testbench {

/// What a network stack might send, and what no sound one would: from the destination address to the last byte before
/// the frame check sequence. Most have TCP or UDP in IPv4 or IPv6, with checksums that are right, wrong or 0, and
/// lengths, fragments, options and tags that are to be or not (docs/host_interface.md, Ethernet).
struct RandomFrame {
  std::array<std::uint64_t, 2> macs{};  ///< Of the sender and of the receiver
  std::size_t most_bytes = 4096;
  bool roce = false;  ///< May have the UDP port of RoCEv2

  [[nodiscard]] std::vector<std::uint8_t> draw(model::Random& random) const;
};

}  // namespace rnic::testbench
