#pragma once

#include <cstddef>
#include <cstdint>

#include "model/reference/bytes.hpp"

namespace rnic::reference {

/// Invariant CRC of a RoCEv2 packet (annex A17.3.3): the CRC of Ethernet over eight bytes of ones (for the local route
/// header that is not there), then from the IP header to the last pad byte, with ones in place of what routers change:
/// traffic class, flow label, hop limit, IPv4 and UDP checksum, and the byte of FECN and BECN. `ip` is where the IP
/// header begins, `end` one past what is covered. The bytes of the result go to the wire least significant first.
[[nodiscard]] std::uint32_t invariant_crc(const Bytes& frame, std::size_t ip, std::size_t end);

/// IPv4 header checksum over the 20 bytes at `ip`, their checksum field included (RFC 791): 0 where that is right.
[[nodiscard]] std::uint16_t ipv4_checksum(const Bytes& frame, std::size_t ip);

}  // namespace rnic::reference
