#include "driver/nd2/addresses.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace rnic::nd2 {
namespace {

constexpr std::size_t kMappedAt = 12;  // an IPv4 address in a GID
constexpr std::uint8_t kLoopbackNet = 127;

bool is_mapped(const std::array<std::uint8_t, 16>& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) && gid[10] == 0xFF &&
         gid[11] == 0xFF;
}

bool is_loopback(const SocketAddress& address) {
  if (address.family == AF_INET) return address.gid[kMappedAt] == kLoopbackNet;
  return std::all_of(address.gid.begin(), address.gid.end() - 1, [](std::uint8_t byte) { return byte == 0; }) &&
         address.gid.back() == 1;
}

}  // namespace

HRESULT read_address(const sockaddr* from, SIZE_T bytes, SocketAddress& to, HRESULT no_address, HRESULT short_address) {
  if (from == nullptr) return no_address;
  if (bytes < sizeof(sockaddr)) return short_address;
  to = {.family = from->sa_family};
  if (from->sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, from, sizeof in);
    to.port = ntohs(in.sin_port);
    if (in.sin_addr.s_addr == INADDR_ANY) return ND_SUCCESS;
    to.gid[10] = to.gid[11] = 0xFF;
    std::memcpy(&to.gid[kMappedAt], &in.sin_addr, sizeof in.sin_addr);
    return ND_SUCCESS;
  }
  if (from->sa_family != AF_INET6) return ND_INVALID_ADDRESS;
  if (bytes < sizeof(sockaddr_in6)) return short_address;
  sockaddr_in6 in6;
  std::memcpy(&in6, from, sizeof in6);
  to.port = ntohs(in6.sin6_port);
  std::memcpy(to.gid.data(), &in6.sin6_addr, to.gid.size());
  return ND_SUCCESS;
}

ULONG size_of(const SocketAddress& address) {
  return address.family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

void put_address(const SocketAddress& address, void* to) {
  if (address.family == AF_INET6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    std::memcpy(&in6.sin6_addr, address.gid.data(), address.gid.size());
    std::memcpy(to, &in6, sizeof in6);
    return;
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(address.port);
  std::memcpy(&in.sin_addr, &address.gid[kMappedAt], sizeof in.sin_addr);
  std::memcpy(to, &in, sizeof in);
}

HRESULT write_address(const SocketAddress& address, sockaddr* to, ULONG* bytes) {
  if (bytes == nullptr) return ND_INVALID_PARAMETER_2;
  const ULONG needed = size_of(address);
  if (to == nullptr || *bytes < needed) {
    *bytes = needed;
    return ND_BUFFER_OVERFLOW;
  }
  put_address(address, to);
  *bytes = needed;
  return ND_SUCCESS;
}

HRESULT write_address_list(std::span<const sockaddr_storage> addresses, SOCKET_ADDRESS_LIST* list, SIZE_T& bytes) {
  const auto size_of_one = [](const sockaddr_storage& address) -> SIZE_T {
    return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  };
  const SIZE_T packed = std::max(offsetof(SOCKET_ADDRESS_LIST, Address) + addresses.size() * sizeof(SOCKET_ADDRESS),
                                 sizeof(SOCKET_ADDRESS_LIST));
  SIZE_T needed = packed;
  for (const auto& address : addresses) needed += size_of_one(address);
  if (list == nullptr || bytes < needed) {
    bytes = needed;
    return ND_BUFFER_OVERFLOW;
  }
  auto* to = reinterpret_cast<std::uint8_t*>(list) + packed;
  list->iAddressCount = static_cast<INT>(addresses.size());
  SOCKET_ADDRESS* entry = list->Address;
  for (const auto& address : addresses) {
    const SIZE_T size = size_of_one(address);
    std::memcpy(to, &address, size);
    *entry++ = {.lpSockaddr = reinterpret_cast<sockaddr*>(to), .iSockaddrLength = static_cast<INT>(size)};
    to += size;
  }
  bytes = needed;
  return ND_SUCCESS;
}

SocketAddress address_of(const std::array<std::uint8_t, 16>& gid, std::uint16_t port) {
  return {.gid = gid, .port = port, .family = is_mapped(gid) ? AF_INET : AF_INET6};
}

namespace {

/// `from` has kernel calls.
template <typename From>
Result<std::vector<SocketAddress>> addresses_of(From& from) {
  const auto tables = from.call(calls::QueryPort{});
  if (!tables) return tables.error();
  std::vector<SocketAddress> addresses;
  for (std::uint16_t i = 0; i < tables->gids; ++i) {
    const auto entry = from.call(calls::QueryGid{.index = i});
    if (!entry) return entry.error();
    if (entry->gid != decltype(entry->gid){}) addresses.push_back(address_of(entry->gid, 0));
  }
  return addresses;
}

}  // namespace

Result<std::vector<SocketAddress>> own_addresses(umd::ProcessContext& process) { return addresses_of(process); }
Result<std::vector<SocketAddress>> own_addresses(KernelPort& port) { return addresses_of(port); }

Result<void> resolve_loopback(umd::ProcessContext& process, SocketAddress& address) {
  if (!is_loopback(address)) return {};
  const auto own = own_addresses(process);
  if (!own) return own.error();
  const auto same = [&](const SocketAddress& one) { return one.family == address.family; };
  const auto found = std::find_if(own->begin(), own->end(), same);
  if (found == own->end()) return Error::kNotFound;
  address.gid = found->gid;
  return {};
}

}  // namespace rnic::nd2
