#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/nd2/ndspi.h"
#include "driver/umd/process_context.hpp"

// Addresses of sockets, and what they are in kernel calls.

namespace rnic::nd2 {

/// An address and a port. Without an address (all zero): any of the family.
struct SocketAddress {
  std::array<std::uint8_t, 16> gid{};  ///< IPv4 addresses IPv4-mapped
  std::uint16_t port{};
  int family{};

  [[nodiscard]] bool is_any() const { return gid == decltype(gid){}; }
};

/// Reads an address of a client. ND_SUCCESS; `no_address` (null); `short_address` (fewer bytes than its family needs);
/// ND_INVALID_ADDRESS (neither IPv4 nor IPv6).
[[nodiscard]] HRESULT read_address(const sockaddr* from, SIZE_T bytes, SocketAddress& to,
                                   HRESULT no_address = ND_INVALID_PARAMETER_1,
                                   HRESULT short_address = ND_INVALID_PARAMETER_2);
/// Bytes of an address as write_address writes it.
[[nodiscard]] ULONG size_of(const SocketAddress& address);
/// Puts it where there is room for it (sockaddr_storage).
void put_address(const SocketAddress& address, void* to);
/// Gives an address to a client, who says how much room there is. ND_SUCCESS, ND_INVALID_PARAMETER_2 (no size),
/// ND_BUFFER_OVERFLOW (nothing is written but the size that it takes).
[[nodiscard]] HRESULT write_address(const SocketAddress& address, sockaddr* to, ULONG* bytes);
/// Gives a list of addresses to a client, who says how much room there is: the socket addresses are packed behind the
/// array, in the client's buffer. ND_SUCCESS, ND_BUFFER_OVERFLOW (nothing is written but the size that it takes).
[[nodiscard]] HRESULT write_address_list(std::span<const sockaddr_storage> addresses, SOCKET_ADDRESS_LIST* list,
                                         SIZE_T& bytes);
/// The address of a GID, which is not all zero.
[[nodiscard]] SocketAddress address_of(const std::array<std::uint8_t, 16>& gid, std::uint16_t port);

/// The host's own addresses, in the order of the port's table: IPv4 and IPv6. Errors: those of the calls.
[[nodiscard]] Result<std::vector<SocketAddress>> own_addresses(umd::ProcessContext& process);
[[nodiscard]] Result<std::vector<SocketAddress>> own_addresses(KernelPort& port);
/// Whoever says 127.0.0.1 or ::1 means the first own address of that family. Errors: kNotFound (there is none), those
/// of the calls.
[[nodiscard]] Result<void> resolve_loopback(umd::ProcessContext& process, SocketAddress& address);

}  // namespace rnic::nd2
