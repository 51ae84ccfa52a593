#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "driver/result.hpp"

namespace rnic::kmd {

using Gid = std::array<std::uint8_t, 16>;  ///< Network order; IPv4 addresses IPv4-mapped

[[nodiscard]] bool is_ipv4_mapped(const Gid& gid);
/// The address of a multicast group: IPv6 in ff00::/8, or an IPv4 group, 224.0.0.0/4, IPv4-mapped.
[[nodiscard]] bool is_multicast(const Gid& gid);
/// fe80::/64 with the interface identifier of the station address (RFC 4291 appendix A).
[[nodiscard]] Gid link_local_gid(std::uint64_t mac);

/// An own address, and the VLAN on whose interface it is. The packets of a path from there have that VLAN's tag.
struct OwnAddress {
  Gid gid{};
  std::uint16_t vlan{};  ///< VID; 0: none

  bool operator==(const OwnAddress&) const = default;
};

/// What belongs to the port, and what clients name by its place only: own addresses and P_Keys. Entries stay where they
/// are. Beside them the neighbours: who has an address that does not say it itself. Thread safe.
class PortTables {
 public:
  static constexpr std::size_t kMaxGids = 1024;
  static constexpr std::size_t kMaxPkeys = 128;
  static constexpr std::size_t kMaxNeighbours = 4096;

  /// GID 0 is the link-local address, P_Key 0 is 0xFFFF (full member of the default partition).
  explicit PortTables(std::uint64_t mac) : mac_(mac), gids_{{.gid = link_local_gid(mac)}}, pkeys_{0xFFFF} {}

  /// The place of an own address, which it gets if it has none. Errors: kInvalidParameter (a VID above 4094, IEEE
  /// 802.1Q 9.6), kOutOfResources, kOutOfMemory.
  [[nodiscard]] Result<std::uint16_t> add_gid(const Gid& gid, std::uint16_t vlan = 0);
  [[nodiscard]] Result<std::uint16_t> add_pkey(std::uint16_t pkey);
  /// Frames for `gid` go to the station `mac` from now on. Errors: kOutOfResources, kOutOfMemory.
  [[nodiscard]] Result<void> add_neighbour(const Gid& gid, std::uint64_t mac);

  /// Errors: kNotFound.
  [[nodiscard]] Result<Gid> gid(std::size_t index) const;
  [[nodiscard]] Result<OwnAddress> own_address(std::size_t index) const;
  [[nodiscard]] Result<std::uint16_t> pkey(std::size_t index) const;
  /// The place of the P_Key with which this port speaks to a peer that has `pkey`: of the same partition, and one of
  /// both names a full member (InfiniBand specification 10.9.3). Errors: kNotFound.
  [[nodiscard]] Result<std::uint16_t> pkey_index_for(std::uint16_t pkey) const;
  /// The station to which frames for `gid` go: this one, if it is an own address; a neighbour; the group address of a
  /// multicast GID (RFC 1112 6.4, RFC 2464 7); that which a link-local interface identifier is made of. Errors:
  /// kNotFound.
  [[nodiscard]] Result<std::uint64_t> station(const Gid& gid) const;
  [[nodiscard]] std::uint16_t gids() const;
  [[nodiscard]] std::uint16_t pkeys() const;

 private:
  const std::uint64_t mac_;
  mutable std::mutex mutex_;
  std::vector<OwnAddress> gids_;
  std::map<Gid, std::uint64_t> neighbours_;
  std::vector<std::uint16_t> pkeys_;
};

}  // namespace rnic::kmd
