#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace rnic::test {

/// 10.0.0.1, the address of a host that connects to itself.
inline sockaddr_in own_address(std::uint16_t port = 0) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(0x0A000001);
  return to;
}
inline const sockaddr* generic(const sockaddr_in& to) { return reinterpret_cast<const sockaddr*>(&to); }

}  // namespace rnic::test
