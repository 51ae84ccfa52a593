#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rnic::model {

/// What the wire knows of a RoCEv2 packet (InfiniBand specification annex A17, 9.2): where its headers are and what the
/// base transport header says. No check of lengths, checksums or ICRC.
struct RocePacket {
  std::uint8_t opcode{};
  std::uint32_t dest_qpn{};
  std::uint32_t psn{};
};

/// The packet in an Ethernet frame; empty when it is no RoCEv2 packet (UDP destination port 4791 over IPv4 or IPv6,
/// behind one VLAN tag or none).
[[nodiscard]] std::optional<RocePacket> find_roce_packet(std::span<const std::uint8_t> frame);

/// BTH opcode by its name in table 38 of the specification, written as in rdma-core: RC_SEND_ONLY, RC_RDMA_WRITE_FIRST,
/// UD_SEND_ONLY, CNP. Empty for any other text.
[[nodiscard]] std::optional<std::uint8_t> opcode_by_name(std::string_view name);
/// All names that opcode_by_name knows, in the order of their numbers.
[[nodiscard]] std::vector<std::string> opcode_names();

/// Sets Congestion Experienced in the IP header, and its checksum right again (RFC 3168 clause 5). False, and nothing
/// changed, when the frame holds no IP header; or, with `only_capable`, when its sender did not declare itself
/// ECN-capable.
bool mark_congestion(std::span<std::uint8_t> frame, bool only_capable);

}  // namespace rnic::model
