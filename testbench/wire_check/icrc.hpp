#pragma once

#include <cstdint>
#include <span>

namespace rnic::wire_check {

/// Invariant CRC of a RoCEv2 packet that begins with its IP header and ends before its ICRC (InfiniBand specification
/// 7.8.1, annex A17.3.3), as the number whose bytes are on the wire in network order.
[[nodiscard]] std::uint32_t icrc(std::span<const std::uint8_t> packet, bool ipv6);

}  // namespace rnic::wire_check
