#include "driver/ndk/address.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace rnic::ndk {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

Result<Address> Address::from(const SOCKADDR* address, ULONG bytes) {
  if (address == nullptr || bytes < sizeof address->sa_family) return Error::kInvalidParameter;
  Address made;
  if (address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    made.port = ntohs(in.sin_port);
    // The wildcard stays one.
    if (in.sin_addr.s_addr != 0) {
      std::copy(kMapped.begin(), kMapped.end(), made.gid.begin());
      std::memcpy(made.gid.data() + kMapped.size(), &in.sin_addr, sizeof in.sin_addr);
    }
    return made;
  }
  if (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in;
    std::memcpy(&in, address, sizeof in);
    made.port = ntohs(in.sin6_port);
    std::memcpy(made.gid.data(), &in.sin6_addr, made.gid.size());
    made.ipv6 = true;
    return made;
  }
  return Error::kInvalidParameter;
}

Address Address::of(const std::array<std::uint8_t, 16>& gid, std::uint16_t port) {
  return {.gid = gid, .port = port, .ipv6 = !std::equal(kMapped.begin(), kMapped.end(), gid.begin())};
}

NTSTATUS Address::copy_to(SOCKADDR* address, ULONG* bytes) const {
  if (bytes == nullptr) return STATUS_INVALID_PARAMETER;
  const ULONG needed = ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  const bool fits = address != nullptr && *bytes >= needed;
  *bytes = needed;
  if (!fits) return STATUS_BUFFER_TOO_SMALL;
  if (ipv6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, gid.data(), gid.size());
    std::memcpy(address, &in, sizeof in);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, gid.data() + kMapped.size(), sizeof in.sin_addr);
    std::memcpy(address, &in, sizeof in);
  }
  return STATUS_SUCCESS;
}

}  // namespace rnic::ndk
