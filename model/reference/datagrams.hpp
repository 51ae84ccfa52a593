#pragma once

#include <map>
#include <set>

#include "model/reference/qp.hpp"

namespace rnic::reference {

class Nic;

/// Addresses of datagrams, and the groups that queue pairs are attached to (InfiniBand specification 10.5.2).
class Datagrams {
 public:
  explicit Datagrams(Nic& nic) : nic_(nic) {}

  /// Where the datagram of `wqe` goes, and from which of the queue pair's addresses.
  void address(Packet& packet, const Qp& qp, const SendWqe& wqe) const;

  AdminStatus attach(const Address& group, std::uint32_t qpn);
  AdminStatus detach(const Address& group, std::uint32_t qpn);
  [[nodiscard]] bool attached(std::uint32_t qpn) const;
  /// Null: nobody is attached.
  [[nodiscard]] const std::set<std::uint32_t>* members(const Address& group) const;
  [[nodiscard]] bool any() const { return !groups_.empty(); }

 private:
  Nic& nic_;
  std::map<Address, std::set<std::uint32_t>> groups_;
};

}  // namespace rnic::reference
