#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "testbench/wire_check/packet.hpp"

namespace rnic::wire_check {

using Picoseconds = std::uint64_t;

/// Told what is wrong, in words.
using Complain = std::function<void(const std::string&)>;
/// Told what is wrong with a packet of one queue pair.
using ComplainOf = std::function<void(const Packet&, const std::string&)>;

/// What the driver has told a NIC of a queue pair, as far as the wire shows it (InfiniBand specification 11.2.5.2).
struct Attributes {
  std::uint32_t number{};
  Service service{};
  std::uint32_t mtu{};  ///< Bytes
  std::uint32_t send_psn{}, receive_psn{};
  std::uint32_t dest_qpn{};
  Address source{}, dest{};
  std::uint16_t source_port{};
  Tag tag;                     ///< Of what a connected one sends
  std::uint32_t read_limit{};  ///< Outstanding Reads and atomics
  std::uint8_t ack_timeout{};  ///< 4.096 us * 2^n; 0: none
  [[nodiscard]] bool operator==(const Attributes&) const = default;
};

/// What a NIC has begun before something came may still leave for so long: its pipeline, and payload that the host is
/// slow to give.
inline constexpr Picoseconds kGrace = 50'000'000;
/// And so many bytes, when its wire is slow.
inline constexpr std::size_t kGraceBytes = 256 << 10;
/// What has come may wait in the NIC's receive buffer, and the answer to it behind what is to be sent, while so many
/// bytes pass its port in both directions, and no longer than that time (a host may be slow to take and to give).
inline constexpr std::uint64_t kBacklogBytes = 1 << 20;
inline constexpr Picoseconds kBacklogTime = 1'000'000'000;

/// A time, and the bytes that had passed the port of the NIC until then, both ways.
struct Moment {
  Picoseconds at{};
  std::uint64_t bytes{};
  [[nodiscard]] bool operator==(const Moment&) const = default;
};
/// What came at `then` may be what moves the NIC at `now`.
[[nodiscard]] constexpr bool may_move(const Moment& then, const Moment& now) {
  return now.at <= then.at + kGrace || (now.at <= then.at + kBacklogTime && now.bytes <= then.bytes + kBacklogBytes);
}
/// How much of the past is known: packets, messages, Reads.
inline constexpr std::size_t kRemembered = 4096;

}  // namespace rnic::wire_check
