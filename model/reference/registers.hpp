#pragma once

#include <array>
#include <map>
#include <optional>

#include "model/reference/clock.hpp"
#include "model/reference/outside.hpp"

namespace rnic::reference {

class Nic;

/// BAR0: page 0 with the registers, and the user access regions (docs/host_interface.md, "The function").
class Registers {
 public:
  explicit Registers(Nic& nic) : nic_(nic) {}

  /// The answer to a request of the host; nothing for what is posted. What the NIC does not support is counted, and
  /// answered as Unsupported Request if it is answered at all (PCI Express base specification 2.3.1).
  std::optional<HostAnswer> request(const HostRequest& request);

 private:
  [[nodiscard]] std::uint64_t read(std::uint64_t offset) const;
  void write(std::uint64_t offset, std::uint64_t value, std::uint64_t mask);
  void doorbell(std::uint8_t uar, std::uint64_t offset, std::uint64_t value);
  void window(std::uint8_t uar, std::size_t offset, const Bytes& piece);
  void post_from_ring(std::uint8_t uar, const Bytes& first);

  /// The WQE that is being written to a window.
  struct Window {
    Bytes wqe;           ///< What has come of it, from its begin on; empty: none is being written
    bool mixed = false;  ///< A piece has come before the begin of its WQE
  };

  Nic& nic_;
  std::map<std::uint8_t, Window> windows_;
};

}  // namespace rnic::reference
