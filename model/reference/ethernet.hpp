#pragma once

#include "model/reference/bytes.hpp"

namespace rnic::reference {

class Nic;

/// Frames that are not RoCEv2, for the RawPacket queue pair that PortEthernet names (docs/host_interface.md, Ethernet).
class Ethernet {
 public:
  explicit Ethernet(Nic& nic) : nic_(nic) {}
  /// A frame that is no packet of RoCEv2 for this port.
  void take(const Bytes& frame);

  std::uint64_t control = 0;  ///< PortEthernet
  std::uint64_t groups = 0;   ///< PortGroups

 private:
  [[nodiscard]] bool wants(std::uint64_t dest, std::uint64_t source) const;
  Nic& nic_;
};

}  // namespace rnic::reference
