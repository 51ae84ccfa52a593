#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "driver/ip/ip_frame.hpp"

namespace rnic::ip {

/// What of a host's IP stack its network needs to find it, and it to find others: it answers ARP requests (RFC 826) and
/// neighbour solicitations (RFC 4861) for its addresses, and echo requests to them (RFC 792, RFC 4443), and asks for
/// addresses of others. All addresses are on the link. It knows no time: who asks in vain asks again.
///
/// What is malformed, or is not for this host, is not heard.
class HostStack {
 public:
  static constexpr std::size_t kMostNeighbours = 1024;

  struct Faces {
    std::function<void(const Bytes&)> send;  ///< A frame, without padding and frame check sequence
    /// The station behind an address is known from now on, or is another one.
    std::function<void(const Address&, std::uint64_t mac)> learned;
  };

  /// `addresses` without those of groups.
  HostStack(std::uint64_t mac, std::vector<Address> addresses, Faces faces);

  /// A frame that has come to the port, without frame check sequence.
  void hear(View frame);
  /// Asks the network who has the address. False: it cannot, for the host has no address that could ask.
  bool ask(const Address& wanted);
  [[nodiscard]] std::optional<std::uint64_t> station(const Address& address) const;

 private:
  void hear_arp(View frame);
  void hear_ipv4(View frame);
  void hear_ipv6(View frame);
  void hear_echo4(const Address& from, const Address& to, std::uint64_t mac, View message);
  void hear_echo6(const Address& from, const Address& to, std::uint64_t mac, View message);
  void hear_solicitation(const Address& from, const Address& to, std::uint64_t mac, View message);
  void hear_advertisement(const Address& to, View message);
  [[nodiscard]] bool owns(const Address& address) const;
  [[nodiscard]] const Address* source_for(const Address& to) const;
  void learn(const Address& address, std::uint64_t mac, bool only_known);

  const std::uint64_t mac_;
  const std::vector<Address> addresses_;
  const Faces faces_;
  /// Without a station: asked for.
  std::map<Address, std::optional<std::uint64_t>> neighbours_;
};

}  // namespace rnic::ip
