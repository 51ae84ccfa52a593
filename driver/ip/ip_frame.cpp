#include "driver/ip/ip_frame.hpp"

#include <algorithm>

namespace rnic::ip {
namespace {

constexpr std::size_t kMappedAt = 12;
constexpr std::array<std::uint8_t, kMappedAt> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

/// The sum of 16-bit words, with a byte that is left over in front of a zero.
std::uint32_t sum_of(View bytes, std::uint32_t sum) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += i % 2 == 0 ? std::uint32_t{bytes[i]} << 8 : bytes[i];
  return sum;
}

}  // namespace

std::uint64_t number_at(View from, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : from.subspan(at, bytes)) value = value << 8 | byte;
  return value;
}

void append_number(Bytes& to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i)));
}

void append(Bytes& to, View more) { to.insert(to.end(), more.begin(), more.end()); }

std::uint16_t internet_checksum(View bytes, std::uint32_t sum) {
  sum = sum_of(bytes, sum);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::uint16_t icmpv6_checksum(const Address& from, const Address& to, View message) {
  std::uint32_t sum = sum_of(to, sum_of(from, 0));
  sum += static_cast<std::uint32_t>(message.size()) + kProtocolIcmpv6;
  return internet_checksum(message, sum);
}

Bytes ethernet(std::uint64_t to, std::uint64_t from, std::uint16_t type) {
  Bytes frame;
  append_number(frame, to, kMacBytes);
  append_number(frame, from, kMacBytes);
  append_number(frame, type, 2);
  return frame;
}

Bytes ipv4_frame(std::uint64_t to_mac, std::uint64_t from_mac, const Address& from, const Address& to,
                 std::uint8_t protocol, View message) {
  constexpr std::uint8_t kVersionAndLength = 0x45, kHops = 64;
  constexpr std::size_t kChecksumAt = 10;
  Bytes header{kVersionAndLength, 0};
  append_number(header, kIpv4Bytes + message.size(), 2);
  append_number(header, 0, 4);  // identification, flags and fragment offset
  header.insert(header.end(), {kHops, protocol, 0, 0});
  append(header, View(from).subspan(kMappedAt));
  append(header, View(to).subspan(kMappedAt));
  const std::uint16_t checksum = internet_checksum(header);
  header[kChecksumAt] = static_cast<std::uint8_t>(checksum >> 8);
  header[kChecksumAt + 1] = static_cast<std::uint8_t>(checksum);
  Bytes frame = ethernet(to_mac, from_mac, kTypeIpv4);
  append(frame, header);
  append(frame, message);
  return frame;
}

Bytes icmpv6_frame(std::uint64_t to_mac, std::uint64_t from_mac, const Address& from, const Address& to,
                   Bytes message) {
  constexpr std::uint8_t kHops = 255;
  constexpr std::size_t kChecksumAt = 2;
  message[kChecksumAt] = message[kChecksumAt + 1] = 0;
  const std::uint16_t checksum = icmpv6_checksum(from, to, message);
  message[kChecksumAt] = static_cast<std::uint8_t>(checksum >> 8);
  message[kChecksumAt + 1] = static_cast<std::uint8_t>(checksum);
  Bytes frame = ethernet(to_mac, from_mac, kTypeIpv6);
  append_number(frame, 0x6000'0000, 4);  // version 6, traffic class and flow label 0
  append_number(frame, message.size(), 2);
  frame.insert(frame.end(), {kProtocolIcmpv6, kHops});
  append(frame, from);
  append(frame, to);
  append(frame, message);
  return frame;
}

bool is_link_local(const Address& address) { return address[0] == 0xFE && (address[1] & 0xC0) == 0x80; }

bool is_unspecified(const Address& address) {
  const auto begin = address.begin() + (kmd::is_ipv4_mapped(address) ? kMappedAt : 0);
  return std::all_of(begin, address.end(), [](std::uint8_t byte) { return byte == 0; });
}

Address mapped(View ipv4) {
  Address address{};
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.begin());
  std::copy_n(ipv4.begin(), address.size() - kMappedAt, address.begin() + kMappedAt);
  return address;
}

Address solicited_node(const Address& address) {
  Address group{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF};
  std::copy(address.end() - 3, address.end(), group.end() - 3);
  return group;
}

std::uint64_t group_mac(const Address& group) { return 0x3333'0000'0000 | number_at(group, 12, 4); }

}  // namespace rnic::ip
