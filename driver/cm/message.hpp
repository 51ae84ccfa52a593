#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

/// Connection manager (docs/connection_manager.md). Clauses are of the InfiniBand specification volume 1.
namespace rnic::cm {

using Gid = std::array<std::uint8_t, 16>;  ///< Network order; IPv4 addresses IPv4-mapped

inline constexpr std::size_t kMadBytes = 256;
using Mad = std::array<std::uint8_t, kMadBytes>;

/// What a datagram of the class Communication Management is of (16.7).
enum class Attribute : std::uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
  kLap = 0x19,
  kApr = 0x1A,
};

/// Consumer's bytes of a message, as many as its layout has.
template <std::size_t Room>
using PrivateData = std::array<std::uint8_t, Room>;

/// Transport service of a REQ (12.7).
enum class Service : std::uint8_t { kRc = 0, kUc = 1, kRd = 2, kExtended = 3 };

/// Why a REJ (12.6.7.2); values that nobody has given are kept as they come.
enum class Reason : std::uint16_t {
  kNoQp = 1,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidCommunicationId = 6,
  kInvalidServiceId = 8,
  kInvalidService = 9,
  kStale = 10,
  kInvalidGid = 12,
  kInvalidMtu = 26,
  kConsumer = 28,
  kInvalidClassVersion = 31,
};

/// Which message a MRA or REJ is about (12.6.6, 12.6.7).
enum class About : std::uint8_t { kReq = 0, kRep = 1, kOther = 2 };

/// Where a REQ says that the packets of its sender come from and go to (12.7, A17).
struct PathRecord {
  std::uint16_t local_lid = 0xFFFF;  ///< RoCE has none: permissive
  std::uint16_t remote_lid = 0xFFFF;
  Gid local_gid{};
  Gid remote_gid{};
  std::uint32_t flow_label{};  ///< 20 bits
  std::uint8_t packet_rate{};  ///< 6 bits
  std::uint8_t traffic_class{};
  std::uint8_t hop_limit = 64;
  std::uint8_t service_level{};  ///< 4 bits
  bool subnet_local{};
  std::uint8_t ack_timeout{};  ///< 4.096 us * 2^n, 5 bits

  bool operator==(const PathRecord&) const = default;
};

/// Request for a connection (12.6.5).
struct Req {
  static constexpr Attribute kAttribute = Attribute::kReq;
  std::uint32_t local_id{};
  std::uint64_t service_id{};
  std::uint64_t ca_guid{};
  std::uint32_t qkey{};
  std::uint32_t qpn{};
  std::uint8_t responder_resources{};
  std::uint32_t eecn{};
  std::uint8_t initiator_depth{};
  std::uint32_t remote_eecn{};
  std::uint8_t remote_response_timeout{};  ///< In which the receiver answers: 4.096 us * 2^n
  Service service{};
  bool flow_control = true;
  std::uint32_t psn{};                    ///< The first that the receiver of the message shall send (12.6.5)
  std::uint8_t local_response_timeout{};  ///< In which the sender answers a REP
  std::uint8_t retry_count{};
  std::uint16_t pkey = 0xFFFF;
  std::uint8_t path_mtu{};  ///< ibv_mtu
  bool rdc_exists{};
  std::uint8_t rnr_retry{};
  std::uint8_t max_retries{};  ///< Of messages of the connection manager
  bool srq{};
  std::uint8_t extended_service{};
  PathRecord primary{};
  PathRecord alternate{.local_lid = 0, .remote_lid = 0, .hop_limit = 0};
  PrivateData<92> data{};

  bool operator==(const Req&) const = default;
};

/// Message receipt acknowledgment: the answer takes longer (12.6.6).
struct Mra {
  static constexpr Attribute kAttribute = Attribute::kMra;
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  About about{};
  std::uint8_t service_timeout{};  ///< 4.096 us * 2^n
  PrivateData<222> data{};

  bool operator==(const Mra&) const = default;
};

/// Refusal (12.6.7).
struct Rej {
  static constexpr Attribute kAttribute = Attribute::kRej;
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  About about{};
  std::uint8_t info_length{};  ///< Bytes of info that are used
  Reason reason{};
  PrivateData<72> info{};
  PrivateData<148> data{};

  bool operator==(const Rej&) const = default;
};

/// Reply to a request (12.6.8).
struct Rep {
  static constexpr Attribute kAttribute = Attribute::kRep;
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  std::uint32_t qkey{};
  std::uint32_t qpn{};
  std::uint32_t eecn{};
  std::uint32_t psn{};  ///< The first that the receiver of the message shall send (12.6.5)
  std::uint8_t responder_resources{};
  std::uint8_t initiator_depth{};
  std::uint8_t target_ack_delay{};
  std::uint8_t failover{};
  bool flow_control = true;
  std::uint8_t rnr_retry{};
  bool srq{};
  std::uint64_t ca_guid{};
  PrivateData<196> data{};

  bool operator==(const Rep&) const = default;
};

/// Ready to use (12.6.9).
struct Rtu {
  static constexpr Attribute kAttribute = Attribute::kRtu;
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  PrivateData<224> data{};

  bool operator==(const Rtu&) const = default;
};

/// Request for disconnection (12.6.10).
struct Dreq {
  static constexpr Attribute kAttribute = Attribute::kDreq;
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  std::uint32_t remote_qpn{};
  PrivateData<220> data{};

  bool operator==(const Dreq&) const = default;
};

/// Reply to it (12.6.11).
struct Drep {
  static constexpr Attribute kAttribute = Attribute::kDrep;
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  PrivateData<224> data{};

  bool operator==(const Drep&) const = default;
};

/// Load alternate path (12.8.1): what is needed to refuse it.
struct Lap {
  static constexpr Attribute kAttribute = Attribute::kLap;
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  std::uint32_t remote_qpn{};
  std::uint8_t remote_response_timeout{};
  PrivateData<168> data{};

  bool operator==(const Lap&) const = default;
};

/// Alternate path response (12.8.2).
struct Apr {
  static constexpr Attribute kAttribute = Attribute::kApr;
  static constexpr std::uint8_t kNotSupported = 2;  ///< Status
  std::uint32_t local_id{};
  std::uint32_t remote_id{};
  std::uint8_t info_length{};
  std::uint8_t status{};
  PrivateData<72> info{};
  PrivateData<148> data{};

  bool operator==(const Apr&) const = default;
};

/// Which queue pair serves a datagram service (12.11.1).
struct SidrReq {
  static constexpr Attribute kAttribute = Attribute::kSidrReq;
  std::uint32_t request_id{};
  std::uint16_t pkey = 0xFFFF;
  std::uint64_t service_id{};
  PrivateData<216> data{};

  bool operator==(const SidrReq&) const = default;
};

/// The answer (12.11.2).
struct SidrRep {
  static constexpr Attribute kAttribute = Attribute::kSidrRep;
  enum class Status : std::uint8_t {
    kSuccess = 0,
    kUnsupportedService = 1,
    kRejected = 2,
    kNoQp = 3,
    kRedirected = 4,
    kUnsupportedVersion = 5,
  };
  std::uint32_t request_id{};
  Status status{};
  std::uint8_t info_length{};
  std::uint32_t qpn{};
  std::uint64_t service_id{};
  std::uint32_t qkey{};
  PrivateData<72> info{};
  PrivateData<136> data{};

  bool operator==(const SidrRep&) const = default;
};

struct Message {
  std::uint64_t transaction{};
  std::variant<Req, Mra, Rej, Rep, Rtu, Dreq, Drep, SidrReq, SidrRep, Lap, Apr> body{};

  bool operator==(const Message&) const = default;
};

/// Why a datagram is no message.
enum class Lie : std::uint8_t {
  kLength,        ///< Not 256 bytes
  kNoClass,       ///< Another base version or class
  kClassVersion,  ///< A version of the class that is not 2
  kMethod,        ///< Not Send
  kAttribute,     ///< No message of the connection manager, or an attribute modifier
  kField,         ///< A field has a value that there is not
};

/// Bytes of a message; reserved ones are 0.
[[nodiscard]] Mad encode(const Message& message);

/// Reads a datagram; reserved fields are not looked at (13.4.7).
struct Decoded {
  std::optional<Message> message{};
  Lie lie{};  ///< Without a message: why
};
[[nodiscard]] Decoded decode(std::span<const std::uint8_t> mad);

/// Copies what fits; the rest is 0.
template <std::size_t Room>
PrivateData<Room> private_data(std::span<const std::uint8_t> bytes, std::size_t at = 0) {
  PrivateData<Room> data{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), Room - at), data.begin() + static_cast<std::ptrdiff_t>(at));
  return data;
}

}  // namespace rnic::cm
