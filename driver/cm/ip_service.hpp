#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "driver/cm/message.hpp"

namespace rnic::cm {

/// Port spaces of services named by IP addresses and ports: bits 31:16 of their service ID (annex A11.4.1: the
/// protocol number of IP behind the prefix 00 00 00 00 01).
enum class PortSpace : std::uint16_t { kTcp = 0x0106, kUdp = 0x0111 };

/// Service ID of a port.
[[nodiscard]] constexpr std::uint64_t service_id_of(PortSpace space, std::uint16_t port) {
  return std::uint64_t{static_cast<std::uint16_t>(space)} << 16 | port;
}

struct ServicePort {
  PortSpace space{};
  std::uint16_t port{};

  bool operator==(const ServicePort&) const = default;
};
/// Of a service ID that names a port.
[[nodiscard]] std::optional<ServicePort> port_of(std::uint64_t service_id);

/// What stands in front of the consumer's private data in REQ and SIDR REQ of such a service (A11.4.2).
struct IpHeader {
  static constexpr std::size_t kBytes = 36;
  std::uint16_t source_port{};
  Gid source{};
  Gid destination{};

  bool operator==(const IpHeader&) const = default;
};
[[nodiscard]] std::array<std::uint8_t, IpHeader::kBytes> encode(const IpHeader& header);
/// Nothing: another version of the header or of IP, or both addresses are not of the version that it names.
[[nodiscard]] std::optional<IpHeader> read_ip_header(std::span<const std::uint8_t> private_data);

[[nodiscard]] bool is_ipv4(const Gid& gid);
[[nodiscard]] bool is_multicast(const Gid& gid);

}  // namespace rnic::cm
