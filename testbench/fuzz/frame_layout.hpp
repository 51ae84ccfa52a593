#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "testbench/roce_frame.hpp"

namespace rnic::testbench {

/// Where the parts of a frame are, as its first bytes say; nothing is sure about a frame that was tampered with.
struct FrameLayout {
  bool ipv6;
  std::size_t ip = roce::kEthernetBytes, udp, bth, end;  ///< end: of the ICRC, as the IP header says
};

/// None: no IP packet with room for a BTH.
[[nodiscard]] std::optional<FrameLayout> layout_of(std::span<const std::uint8_t> frame);
[[nodiscard]] bool icrc_right(std::span<const std::uint8_t> frame, const FrameLayout& layout);
/// ICRC where the IP header says that the packet ends, and the IPv4 header checksum.
void repair_at(roce::Bytes& frame, const FrameLayout& layout, bool checksum);
void put_big(roce::Bytes& frame, std::size_t at, std::uint64_t value, int bytes);

}  // namespace rnic::testbench
