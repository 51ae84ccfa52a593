#pragma once

#include <array>
#include <cstdint>

#include "driver/generated/host_interface.hpp"
#include "driver/result.hpp"

namespace rnic::umd {

/// Where datagrams go: a port of the network, as an address handle of the verbs. Which queue pair there, and with which
/// Q_Key, each request says. The device keeps nothing of it; it travels in each request. Copies freely, never changes.
class AddressHandle {
 public:
  struct Spec {
    std::array<std::uint8_t, 16> dest_ip{};  ///< Network order; IPv4-mapped for IPv4
    std::uint64_t dest_mac{};                ///< As a number: the first byte on the wire is bits 47:40
    std::uint8_t traffic_class{};
    std::uint8_t hop_limit = 64;
    std::uint32_t
        flow_label{};      ///< 20 bits; 0: one that depends on both queue pairs. The UDP source port comes from it
    bool second_source{};  ///< Send from the second address of the queue pair
    std::uint16_t vlan{};  ///< VID of the VLAN of the address that it is sent from; 0: none, and no tag
    std::uint8_t sl{};     ///< Service level: the priority in the tag
  };

  /// Errors: kInvalidParameter (a flow label of more than 20 bits, a MAC address of more than 48, hop limit 0, a VID
  /// above 4094, a service level above 7).
  static Result<AddressHandle> create(const Spec& spec);

  /// The segment of a request from queue pair `source_qpn`.
  [[nodiscard]] hw::WqeAddress segment(std::uint32_t source_qpn, std::uint32_t dest_qpn, std::uint32_t qkey) const;

 private:
  explicit AddressHandle(const Spec& spec) : spec_(spec) {}

  Spec spec_;
};

}  // namespace rnic::umd
