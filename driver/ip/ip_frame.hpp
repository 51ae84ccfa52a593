#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/kmd/port_tables.hpp"

/// Bytes of Ethernet, ARP, IP and ICMP, as far as a host needs them to be found on its network.
namespace rnic::ip {

using Bytes = std::vector<std::uint8_t>;
using View = std::span<const std::uint8_t>;
using Address = kmd::Gid;

inline constexpr std::size_t kEthernetBytes = 14, kIpv4Bytes = 20, kIpv6Bytes = 40, kMacBytes = 6;
inline constexpr std::uint16_t kTypeIpv4 = 0x0800, kTypeArp = 0x0806, kTypeIpv6 = 0x86DD;
inline constexpr std::uint8_t kProtocolIcmp = 1, kProtocolIcmpv6 = 58;
inline constexpr std::uint64_t kBroadcast = 0xFFFF'FFFF'FFFF;

/// The `bytes` bytes at `at`, which are there, as a number in network order.
[[nodiscard]] std::uint64_t number_at(View from, std::size_t at, std::size_t bytes);
void append_number(Bytes& to, std::uint64_t value, std::size_t bytes);
void append(Bytes& to, View more);

/// Ones' complement of the ones' complement sum of 16-bit words; a byte that is left over has a zero behind it
/// (RFC 1071). Over bytes with a right checksum in them it is 0. `sum`: what was added up before.
[[nodiscard]] std::uint16_t internet_checksum(View bytes, std::uint32_t sum = 0);
/// Checksum of an ICMPv6 message with the pseudo-header of these addresses (RFC 8200 8.1).
[[nodiscard]] std::uint16_t icmpv6_checksum(const Address& from, const Address& to, View message);

[[nodiscard]] Bytes ethernet(std::uint64_t to, std::uint64_t from, std::uint16_t type);
/// An IPv4 packet with `message`, in a frame; nothing is to be fragmented. Addresses are IPv4-mapped.
[[nodiscard]] Bytes ipv4_frame(std::uint64_t to_mac, std::uint64_t from_mac, const Address& from, const Address& to,
                               std::uint8_t protocol, View message);
/// An IPv6 packet with the ICMPv6 `message`, whose checksum is written, in a frame. The hop limit is 255.
[[nodiscard]] Bytes icmpv6_frame(std::uint64_t to_mac, std::uint64_t from_mac, const Address& from, const Address& to,
                                 Bytes message);

[[nodiscard]] bool is_link_local(const Address& address);
/// 0.0.0.0 or ::.
[[nodiscard]] bool is_unspecified(const Address& address);
[[nodiscard]] Address mapped(View ipv4);
/// The group of all on the link (RFC 4291 2.7.1).
inline constexpr Address kAllNodes{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
/// The group of all who may have the address (RFC 4291 2.7.1).
[[nodiscard]] Address solicited_node(const Address& address);
/// The group bit, sent first (IEEE 802.3 clause 3.2.3): multicast, or broadcast.
[[nodiscard]] constexpr bool is_group_mac(std::uint64_t mac) { return (mac >> 40 & 1) != 0; }
/// The station address of an IPv6 group (RFC 2464 7).
[[nodiscard]] std::uint64_t group_mac(const Address& group);

}  // namespace rnic::ip
