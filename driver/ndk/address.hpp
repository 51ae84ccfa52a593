#pragma once

#include <array>
#include <cstdint>

#include "driver/ndk/ndktypes.h"
#include "driver/result.hpp"

namespace rnic::ndk {

/// An IP address, IPv4 mapped, and a port.
struct Address {
  std::array<std::uint8_t, 16> gid{};
  std::uint16_t port{};
  bool ipv6{};

  /// Errors: kInvalidParameter (no IPv4 or IPv6 address).
  static Result<Address> from(const SOCKADDR* address, ULONG bytes);
  static Address of(const std::array<std::uint8_t, 16>& gid, std::uint16_t port);
  /// Into the consumer's buffer; `bytes` is then the size. STATUS_BUFFER_TOO_SMALL: it would not fit.
  NTSTATUS copy_to(SOCKADDR* address, ULONG* bytes) const;
};

}  // namespace rnic::ndk
