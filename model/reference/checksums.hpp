#pragma once

#include "model/reference/bytes.hpp"

namespace rnic::reference {

/// The checksums of the IP packet in an Ethernet frame (docs/host_interface.md, Ethernet; RFC 1071).
struct FrameChecksums {
  bool l3_ok{};  ///< There is an IPv4 header, and its checksum is right
  bool l4_ok{};  ///< There is a TCP or UDP segment, and its checksum is right
};
[[nodiscard]] FrameChecksums look_at_checksums(const Bytes& frame);
/// Puts right ones where there are places for them.
void insert_checksums(Bytes& frame);

}  // namespace rnic::reference
