#pragma once

#include <cstdint>
#include <optional>

#include "model/reference/bytes.hpp"
#include "model/reference/checksums.hpp"
#include "model/reference/numbers.hpp"

namespace rnic::reference {

/// The way of a packet: Ethernet, IP and UDP.
struct Path {
  std::uint64_t source_mac{}, dest_mac{};
  std::optional<std::uint16_t> tag;  ///< VLAN tag (IEEE 802.1Q 9.6): PCP in bits 15:13, DEI in bit 12, VID
  bool ipv6{};
  Address source{}, dest{};  ///< IPv4 as ::ffff:a.b.c.d
  std::uint8_t traffic_class{}, hop_limit{};
  std::uint32_t flow_label{};
  std::uint16_t source_port{};

  /// The VLAN; 0: none, as of a tag that gives a priority only.
  [[nodiscard]] std::uint16_t vid() const { return tag ? *tag & 0xfff : 0; }
};

/// VID that no tag has (IEEE 802.1Q 9.6, table 9-2).
inline constexpr std::uint16_t kReservedVid = 0xfff;
/// The tag that two bytes of ModifyQp or of an address segment ask for: VID, whether there is one, priority.
[[nodiscard]] std::optional<std::uint16_t> requested_tag(std::uint64_t bits);

/// A RoCEv2 packet: base transport header, the extended headers that its opcode has, and payload (InfiniBand
/// specification 9.2, 9.3).
struct Packet {
  Path path;
  std::uint8_t opcode{};  ///< Service in bits 7:5
  bool solicited{};
  bool ack_request{};
  std::uint16_t pkey{};
  std::uint32_t dest_qpn{}, psn{};
  std::uint64_t va{};  ///< RETH, AtomicETH
  std::uint32_t rkey{}, length{};
  std::uint64_t swap_add{}, compare{};  ///< AtomicETH
  std::uint32_t qkey{}, source_qpn{};   ///< DETH
  std::uint8_t syndrome{};              ///< AETH
  std::uint32_t msn{};
  std::uint64_t original{};   ///< AtomicAckETH
  std::uint32_t immediate{};  ///< ImmDt, or the key of IETH
  Bytes payload;
  bool ip_csum{};            ///< To send, RawPacket: checksums are to be put in
  FrameChecksums checksums;  ///< Received, RawPacket
  Bytes grh;                 ///< Received: 40 bytes as they go in front of a datagram (11.4.1.2, annex A17.4.5.1)

  [[nodiscard]] QpType service() const { return static_cast<QpType>(opcode >> 5); }
  [[nodiscard]] std::uint8_t kind() const { return opcode & 0x1f; }
};

/// What the kinds of packets are.
[[nodiscard]] bool is_response(std::uint8_t kind);
[[nodiscard]] bool is_send(std::uint8_t kind);
[[nodiscard]] bool is_write(std::uint8_t kind);
[[nodiscard]] bool begins_message(std::uint8_t kind);
[[nodiscard]] bool ends_message(std::uint8_t kind);
[[nodiscard]] bool has_immediate(std::uint8_t kind);
[[nodiscard]] bool has_invalidate(std::uint8_t kind);
/// A service has packets of this kind (table 38).
[[nodiscard]] bool is_known(QpType service, std::uint8_t kind);

/// The frame of a packet, without frame check sequence, padded to 60 bytes. That of a RawPacket queue pair is all
/// payload.
[[nodiscard]] Bytes build(const Packet& packet);

enum class Verdict : std::uint8_t { Good, NotRoce, Malformed, BadIcrc, Congestion };
/// Reads a frame that has come for the station `mac`. Good: `packet` is it. Congestion: it is a congestion
/// notification, which has no effect.
[[nodiscard]] Verdict parse(const Bytes& frame, std::uint64_t mac, Packet& packet);

/// MAC address to which datagrams of a group go (RFC 1112 6.4, RFC 2464 7); nothing: it is no group's address.
[[nodiscard]] std::optional<std::uint64_t> multicast_mac(const Address& group);

}  // namespace rnic::reference
