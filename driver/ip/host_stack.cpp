#include "driver/ip/host_stack.hpp"

#include <algorithm>
#include <utility>

namespace rnic::ip {
namespace {

/// The link-layer address option of `type` behind the fixed part of a neighbour message. Nothing in `*options`: they
/// are malformed (RFC 4861 4.6: a length of 0).
struct NeighbourOptions {
  bool well_formed = true;
  std::optional<std::uint64_t> mac;
};

NeighbourOptions options_of(View options, std::uint8_t type) {
  constexpr std::size_t kUnit = 8;
  NeighbourOptions found;
  while (!options.empty()) {
    const std::size_t length = options.size() < 2 ? 0 : options[1] * kUnit;
    if (length == 0 || length > options.size()) return {false, {}};
    if (options[0] == type && length == kUnit) found.mac = number_at(options, 2, kMacBytes);
    options = options.subspan(length);
  }
  return found;
}

constexpr std::size_t kNeighbourBytes = 24;  ///< Of a solicitation or an advertisement, without options
constexpr std::uint8_t kSolicitation = 135, kAdvertisement = 136, kSourceOption = 1, kTargetOption = 2;
constexpr std::uint8_t kEchoRequest4 = 8, kEchoReply4 = 0, kEchoRequest6 = 128, kEchoReply6 = 129;
constexpr std::size_t kEchoBytes = 8;
constexpr std::size_t kTargetAt = 8;
constexpr std::uint32_t kSolicited = 1U << 30, kOverride = 1U << 29;

Address address_at(View from, std::size_t at) {
  Address address;
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), address.size(), address.begin());
  return address;
}

Bytes neighbour_message(std::uint8_t type, std::uint32_t flags, const Address& target, std::uint8_t option,
                        std::uint64_t mac) {
  Bytes message{type, 0, 0, 0};
  append_number(message, flags, 4);
  append(message, target);
  message.insert(message.end(), {option, 1});
  append_number(message, mac, kMacBytes);
  return message;
}

constexpr std::size_t kArpBytes = 28;
constexpr std::uint64_t kArpOfEthernetAndIpv4 = 0x0001'0800'06'04;
constexpr std::uint16_t kArpRequest = 1, kArpReply = 2;

Bytes arp_frame(std::uint64_t to, std::uint16_t operation, std::uint64_t mac, const Address& own,
                std::uint64_t target_mac, const Address& target) {
  constexpr std::size_t kMappedAt = 12;
  Bytes frame = ethernet(to, mac, kTypeArp);
  append_number(frame, kArpOfEthernetAndIpv4, 6);
  append_number(frame, operation, 2);
  append_number(frame, mac, kMacBytes);
  append(frame, View(own).subspan(kMappedAt));
  append_number(frame, target_mac, kMacBytes);
  append(frame, View(target).subspan(kMappedAt));
  return frame;
}

}  // namespace

HostStack::HostStack(std::uint64_t mac, std::vector<Address> addresses, Faces faces)
    : mac_(mac), addresses_(std::move(addresses)), faces_(std::move(faces)) {}

bool HostStack::owns(const Address& address) const {
  return std::find(addresses_.begin(), addresses_.end(), address) != addresses_.end();
}

/// An own address that speaks to `to`: of its family and, if there is one, its scope (RFC 6724, rule 2).
const Address* HostStack::source_for(const Address& to) const {
  const Address* any = nullptr;
  for (const auto& own : addresses_) {
    if (kmd::is_ipv4_mapped(own) != kmd::is_ipv4_mapped(to)) continue;
    if (is_link_local(own) == is_link_local(to)) return &own;
    any = &own;
  }
  return any;
}

void HostStack::learn(const Address& address, std::uint64_t mac, bool only_known) {
  if (is_unspecified(address) || kmd::is_multicast(address) || owns(address)) return;
  if (is_group_mac(mac) || mac == 0) return;
  const auto known = neighbours_.find(address);
  if (known == neighbours_.end() && (only_known || neighbours_.size() >= kMostNeighbours)) return;
  auto& station = neighbours_[address];
  if (std::exchange(station, mac) != mac) faces_.learned(address, mac);
}

std::optional<std::uint64_t> HostStack::station(const Address& address) const {
  const auto known = neighbours_.find(address);
  return known == neighbours_.end() ? std::nullopt : known->second;
}

bool HostStack::ask(const Address& wanted) {
  const Address* const own = source_for(wanted);
  if (own == nullptr || kmd::is_multicast(wanted)) return false;
  if (neighbours_.size() >= kMostNeighbours) {
    // Who was asked for in vain makes room.
    const auto vain = std::find_if(neighbours_.begin(), neighbours_.end(), [](const auto& one) { return !one.second; });
    if (vain != neighbours_.end()) neighbours_.erase(vain);
  }
  if (neighbours_.size() < kMostNeighbours) neighbours_.try_emplace(wanted);
  if (kmd::is_ipv4_mapped(wanted)) {
    faces_.send(arp_frame(kBroadcast, kArpRequest, mac_, *own, 0, wanted));
    return true;
  }
  const Address group = solicited_node(wanted);
  faces_.send(icmpv6_frame(group_mac(group), mac_, *own, group,
                           neighbour_message(kSolicitation, 0, wanted, kSourceOption, mac_)));
  return true;
}

void HostStack::hear(View frame) {
  if (frame.size() < kEthernetBytes) return;
  const std::uint64_t to = number_at(frame, 0, kMacBytes);
  if (to != mac_ && !is_group_mac(to)) return;
  switch (number_at(frame, 2 * kMacBytes, 2)) {
    case kTypeArp: return hear_arp(frame);
    case kTypeIpv4: return hear_ipv4(frame);
    case kTypeIpv6: return hear_ipv6(frame);
    default: return;
  }
}

/// RFC 826, Packet Reception; a sender without an address asks whether it may have one (RFC 5227 2.1.1).
void HostStack::hear_arp(View frame) {
  constexpr std::size_t kOperationAt = 6, kSenderMacAt = 8, kSenderAt = 14, kTargetAt = 24;
  const View arp = frame.subspan(kEthernetBytes);
  if (arp.size() < kArpBytes || number_at(arp, 0, 6) != kArpOfEthernetAndIpv4) return;
  const std::uint64_t sender_mac = number_at(arp, kSenderMacAt, kMacBytes);
  const Address sender = mapped(arp.subspan(kSenderAt, 4)), target = mapped(arp.subspan(kTargetAt, 4));
  const bool for_me = owns(target);
  learn(sender, sender_mac, !for_me);
  if (!for_me || number_at(arp, kOperationAt, 2) != kArpRequest) return;
  if (is_group_mac(sender_mac)) return;
  faces_.send(arp_frame(sender_mac, kArpReply, mac_, target, sender_mac, sender));
}

void HostStack::hear_ipv4(View frame) {
  constexpr std::size_t kLengthAt = 2, kFragmentAt = 6, kProtocolAt = 9, kFromAt = 12, kToAt = 16;
  constexpr std::uint64_t kIsFragment = 0x3FFF;  // more fragments, or not the first one
  View packet = frame.subspan(kEthernetBytes);
  if (packet.size() < kIpv4Bytes || packet[0] >> 4 != 4) return;
  const std::size_t header = std::size_t{packet[0] & 0xFU} * 4, length = number_at(packet, kLengthAt, 2);
  if (header < kIpv4Bytes || length < header || length > packet.size()) return;
  packet = packet.first(length);
  if (internet_checksum(packet.first(header)) != 0) return;
  if ((number_at(packet, kFragmentAt, 2) & kIsFragment) != 0 || packet[kProtocolAt] != kProtocolIcmp) return;
  hear_echo4(mapped(packet.subspan(kFromAt, 4)), mapped(packet.subspan(kToAt, 4)),
             number_at(frame, kMacBytes, kMacBytes), packet.subspan(header));
}

void HostStack::hear_echo4(const Address& from, const Address& to, std::uint64_t mac, View message) {
  if (!owns(to) || is_unspecified(from) || kmd::is_multicast(from)) return;
  if (message.size() < kEchoBytes || message[0] != kEchoRequest4 || message[1] != 0) return;
  if (internet_checksum(message) != 0) return;
  Bytes reply{kEchoReply4, 0, 0, 0};
  append(reply, message.subspan(4));
  const std::uint16_t checksum = internet_checksum(reply);
  reply[2] = static_cast<std::uint8_t>(checksum >> 8);
  reply[3] = static_cast<std::uint8_t>(checksum);
  faces_.send(ipv4_frame(mac, mac_, to, from, kProtocolIcmp, reply));
}

void HostStack::hear_ipv6(View frame) {
  constexpr std::size_t kLengthAt = 4, kNextAt = 6, kHopsAt = 7, kFromAt = 8, kToAt = 24;
  constexpr std::uint8_t kHopsOnLink = 255;
  const View packet = frame.subspan(kEthernetBytes);
  if (packet.size() < kIpv6Bytes || packet[0] >> 4 != 6 || packet[kNextAt] != kProtocolIcmpv6) return;
  const std::size_t length = number_at(packet, kLengthAt, 2);
  if (length < 4 || kIpv6Bytes + length > packet.size()) return;
  const View message = packet.subspan(kIpv6Bytes, length);
  const Address from = address_at(packet, kFromAt), to = address_at(packet, kToAt);
  if (icmpv6_checksum(from, to, message) != 0 || message[1] != 0) return;
  const std::uint64_t mac = number_at(frame, kMacBytes, kMacBytes);
  if (message[0] == kEchoRequest6) return hear_echo6(from, to, mac, message);
  // From the link itself, with all its fields, and about one address (RFC 4861 7.1.1, 7.1.2).
  if (packet[kHopsAt] != kHopsOnLink || message.size() < kNeighbourBytes) return;
  if (kmd::is_multicast(address_at(message, kTargetAt))) return;
  if (message[0] == kSolicitation) hear_solicitation(from, to, mac, message);
  if (message[0] == kAdvertisement) hear_advertisement(to, message);
}

void HostStack::hear_echo6(const Address& from, const Address& to, std::uint64_t mac, View message) {
  if (!owns(to) || is_unspecified(from) || kmd::is_multicast(from) || message.size() < kEchoBytes) return;
  Bytes reply{kEchoReply6, 0, 0, 0};
  append(reply, message.subspan(4));
  faces_.send(icmpv6_frame(mac, mac_, to, from, std::move(reply)));
}

/// RFC 4861 7.1.1, 7.2.3, 7.2.4.
void HostStack::hear_solicitation(const Address& from, const Address& to, std::uint64_t mac, View message) {
  const Address target = address_at(message, kTargetAt);
  const auto options = options_of(message.subspan(kNeighbourBytes), kSourceOption);
  if (!options.well_formed || !owns(target)) return;
  const bool looks_for_doubles = is_unspecified(from);
  if (looks_for_doubles && (to != solicited_node(target) || options.mac)) return;
  if (options.mac) learn(from, *options.mac, false);
  const auto answer = neighbour_message(kAdvertisement, looks_for_doubles ? kOverride : kSolicited | kOverride, target,
                                        kTargetOption, mac_);
  if (looks_for_doubles) {
    faces_.send(icmpv6_frame(group_mac(kAllNodes), mac_, target, kAllNodes, answer));
  } else {
    faces_.send(icmpv6_frame(options.mac.value_or(mac), mac_, target, from, answer));
  }
}

/// RFC 4861 7.1.2, 7.2.5. What was not asked for is not learned; an advertisement without Override does not change what
/// is known.
void HostStack::hear_advertisement(const Address& to, View message) {
  const auto flags = static_cast<std::uint32_t>(number_at(message, 4, 4));
  const auto options = options_of(message.subspan(kNeighbourBytes), kTargetOption);
  if (!options.well_formed || !options.mac || (kmd::is_multicast(to) && (flags & kSolicited) != 0)) return;
  const Address target = address_at(message, kTargetAt);
  if (station(target) && (flags & kOverride) == 0) return;
  learn(target, *options.mac, true);
}

}  // namespace rnic::ip
