#include "driver/cm/port_space.hpp"

namespace rnic::cm {
namespace {

constexpr Gid kAll{};
constexpr std::uint16_t kLastPort = 0xFFFF;

}  // namespace

bool PortNumbers::is_taken(PortSpace space, const Gid& address, std::uint16_t port) const {
  if (address != kAll) return owners_.contains({space, port, address}) || owners_.contains({space, port, kAll});
  const auto first = owners_.lower_bound({space, port, kAll});
  return first != owners_.end() && first->first.space == space && first->first.port == port;
}

Result<std::uint16_t> PortNumbers::bind(EndpointId owner, PortSpace space, const Gid& address, std::uint16_t port) {
  return or_out_of_memory([&]() -> Result<std::uint16_t> {
    if (port != 0) {
      if (is_taken(space, address, port)) return Error::kExists;
      owners_.emplace(Key{space, port, address}, owner);
      return port;
    }
    for (unsigned tries = 0; tries <= kLastPort - kFirstEphemeral; ++tries) {
      const std::uint16_t candidate = next_;
      next_ = next_ == kLastPort ? kFirstEphemeral : static_cast<std::uint16_t>(next_ + 1);
      if (is_taken(space, address, candidate)) continue;
      owners_.emplace(Key{space, candidate, address}, owner);
      return candidate;
    }
    return Error::kOutOfResources;
  });
}

void PortNumbers::release(EndpointId owner, PortSpace space, const Gid& address, std::uint16_t port) {
  const auto found = owners_.find({space, port, address});
  if (found != owners_.end() && found->second == owner) owners_.erase(found);
}

std::optional<EndpointId> PortNumbers::find(ServicePort port, const Gid& address) const {
  for (const Gid& of : {address, kAll}) {
    const auto found = owners_.find({port.space, port.port, of});
    if (found != owners_.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace rnic::cm
