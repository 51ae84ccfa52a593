#pragma once

#include <cstdint>
#include <map>

#include "driver/cm/ip_service.hpp"
#include "driver/result.hpp"

namespace rnic::cm {

/// Of an endpoint; never given twice.
using EndpointId = std::uint64_t;

/// Which endpoint has which port of an address. The address 0 means all. Not thread safe.
class PortNumbers {
 public:
  static constexpr std::uint16_t kFirstEphemeral = 0xC000;  ///< RFC 6335: the dynamic ports

  /// Gives `owner` a port; 0 asks for any that is free. Errors: kExists (another has it for that address or for all),
  /// kOutOfResources (no dynamic port is free), kOutOfMemory.
  [[nodiscard]] Result<std::uint16_t> bind(EndpointId owner, PortSpace space, const Gid& address, std::uint16_t port);
  void release(EndpointId owner, PortSpace space, const Gid& address, std::uint16_t port);
  [[nodiscard]] std::size_t size() const { return owners_.size(); }
  /// Who has the port of `address`, itself or with all of them.
  [[nodiscard]] std::optional<EndpointId> find(ServicePort port, const Gid& address) const;

 private:
  struct Key {
    PortSpace space{};
    std::uint16_t port{};
    Gid address{};
    auto operator<=>(const Key&) const = default;
  };
  [[nodiscard]] bool is_taken(PortSpace space, const Gid& address, std::uint16_t port) const;

  std::map<Key, EndpointId> owners_;
  std::uint16_t next_ = kFirstEphemeral;
};

}  // namespace rnic::cm
