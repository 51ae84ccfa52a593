#include "driver/cm/ip_service.hpp"

namespace rnic::cm {
namespace {

constexpr std::size_t kIpv4At = 12;  // of an IPv4-mapped address
constexpr std::size_t kVersionAt = 1, kPortAt = 2, kSourceAt = 4, kDestinationAt = 20;
constexpr std::uint8_t kIpv4 = 4, kIpv6 = 6;

void put_address(std::uint8_t* to, const Gid& gid) {
  // An IPv4 address stands in the last four bytes, behind zeros.
  const std::size_t from = is_ipv4(gid) ? kIpv4At : 0;
  std::copy(gid.begin() + static_cast<std::ptrdiff_t>(from), gid.end(), to + from);
}

std::optional<Gid> take_address(std::span<const std::uint8_t> from, bool ipv4) {
  Gid gid{};
  std::copy_n(from.begin(), gid.size(), gid.begin());
  if (!ipv4) return is_ipv4(gid) ? std::nullopt : std::optional(gid);
  std::fill_n(gid.begin(), kIpv4At, std::uint8_t{0});  // reserved
  gid[10] = gid[11] = 0xFF;
  return gid;
}

}  // namespace

bool is_ipv4(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) && gid[10] == 0xFF &&
         gid[11] == 0xFF;
}

bool is_multicast(const Gid& gid) { return gid[0] == 0xFF || (is_ipv4(gid) && gid[kIpv4At] >> 4 == 0xE); }

std::optional<ServicePort> port_of(std::uint64_t service_id) {
  for (const auto space : {PortSpace::kTcp, PortSpace::kUdp}) {
    const auto port = static_cast<std::uint16_t>(service_id);
    if (service_id == service_id_of(space, port)) return ServicePort{space, port};
  }
  return std::nullopt;
}

std::array<std::uint8_t, IpHeader::kBytes> encode(const IpHeader& header) {
  std::array<std::uint8_t, IpHeader::kBytes> bytes{};
  bytes[kVersionAt] = static_cast<std::uint8_t>((is_ipv4(header.destination) ? kIpv4 : kIpv6) << 4);
  bytes[kPortAt] = static_cast<std::uint8_t>(header.source_port >> 8);
  bytes[kPortAt + 1] = static_cast<std::uint8_t>(header.source_port);
  put_address(&bytes[kSourceAt], header.source);
  put_address(&bytes[kDestinationAt], header.destination);
  return bytes;
}

std::optional<IpHeader> read_ip_header(std::span<const std::uint8_t> data) {
  const unsigned ip = data.size() < IpHeader::kBytes ? 0U : data[kVersionAt] >> 4U;
  if (data.size() < IpHeader::kBytes || data[0] >> 4 != 0 || (ip != kIpv4 && ip != kIpv6)) return std::nullopt;
  const auto source = take_address(data.subspan(kSourceAt, 16), ip == kIpv4);
  const auto destination = take_address(data.subspan(kDestinationAt, 16), ip == kIpv4);
  if (!source || !destination) return std::nullopt;
  return IpHeader{.source_port = static_cast<std::uint16_t>(data[kPortAt] << 8 | data[kPortAt + 1]),
                  .source = *source,
                  .destination = *destination};
}

}  // namespace rnic::cm
