#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rnic::wire_check {

using Frame = std::span<const std::uint8_t>;
using Address = std::array<std::uint8_t, 16>;  ///< IPv6, or IPv4-mapped; network order

/// Transport service: bits 7:5 of an opcode (InfiniBand specification 9.2.1).
/// kRawPacket: of queue pairs alone, whose frames are no packets (docs/host_interface.md, Ethernet).
enum class Service : std::uint8_t { kRc = 0, kUc = 1, kRawPacket = 2, kUd = 3 };

/// Operation: bits 4:0 of an opcode (9.2.1, table 38).
enum class Operation : std::uint8_t {
  kSendFirst,
  kSendMiddle,
  kSendLast,
  kSendLastImmediate,
  kSendOnly,
  kSendOnlyImmediate,
  kWriteFirst,
  kWriteMiddle,
  kWriteLast,
  kWriteLastImmediate,
  kWriteOnly,
  kWriteOnlyImmediate,
  kReadRequest,
  kReadResponseFirst,
  kReadResponseMiddle,
  kReadResponseLast,
  kReadResponseOnly,
  kAcknowledge,
  kAtomicAcknowledge,
  kCompareSwap,
  kFetchAdd,
  kReserved,
  kSendLastInvalidate,
  kSendOnlyInvalidate,
};

constexpr std::uint32_t kMask24 = 0xffffff;
/// How far `a` is ahead of `b`, modulo 2^24 (9.7.2).
[[nodiscard]] constexpr std::uint32_t ahead(std::uint32_t a, std::uint32_t b) { return (a - b) & kMask24; }
/// `a` is not behind `b`: the half of the PSNs that begins with `b`.
[[nodiscard]] constexpr bool not_behind(std::uint32_t a, std::uint32_t b) { return ahead(a, b) < 0x800000; }

/// PCP, DEI and VID of a VLAN tag (IEEE 802.1Q 9.6), from the top; none: no tag.
using Tag = std::optional<std::uint16_t>;
/// The VLAN that a tag names; 0: none, it gives a priority at most.
[[nodiscard]] constexpr std::uint16_t vid(const Tag& tag) { return tag ? *tag & 0xfff : 0; }

/// What a RoCEv2 frame says (9.2 to 9.6, annex A17.3).
struct Packet {
  std::uint64_t dest_mac{}, source_mac{};
  Tag tag;
  Address source{}, dest{};
  std::uint16_t source_port{};
  Service service{};
  Operation operation{};
  bool solicited{}, ack_request{};
  std::uint16_t pkey{};
  std::uint32_t dest_qpn{}, psn{};
  std::uint64_t va{};        ///< RETH, AtomicETH
  std::uint32_t rkey{};      ///< RETH, AtomicETH
  std::uint32_t length{};    ///< RETH
  std::uint8_t syndrome{};   ///< AETH
  std::uint32_t msn{};       ///< AETH
  std::uint32_t qkey{};      ///< DETH
  std::uint32_t from_qpn{};  ///< DETH
  std::size_t bytes{};       ///< Of payload, without pad

  [[nodiscard]] bool is_response() const;
  [[nodiscard]] bool is_send() const;
  [[nodiscard]] bool is_write() const;
  [[nodiscard]] bool is_read_response() const;
  [[nodiscard]] bool is_atomic() const;
  [[nodiscard]] bool begins() const;  ///< A message of SEND or WRITE, or the answer to a Read
  [[nodiscard]] bool ends() const;
  [[nodiscard]] bool has_aeth() const;
};

/// One packet in words.
[[nodiscard]] std::string describe(const Packet& packet);

/// What is wrong with a frame.
struct Faults {
  std::vector<std::string> fatal;  ///< Its receiver drops it
  std::vector<std::string> other;  ///< A sender never does that; a receiver may not care
};

/// Reads a frame (without frame check sequence). Nothing: it is no RoCEv2 frame, that is none in IPv4 or IPv6 to UDP
/// port 4791 (A17.3.1), or one so short that it says nothing. With fatal faults fields may be empty.
[[nodiscard]] std::optional<Packet> read(Frame frame, Faults& faults);

}  // namespace rnic::wire_check
