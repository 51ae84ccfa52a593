// Addresses of sockets and GIDs, and the lists of rdma_getaddrinfo.
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "driver/rdmacm/objects.hpp"
#include "driver/unnoticed.hpp"

namespace rnic::rdmacm {
namespace {

constexpr std::size_t kMappedAt = 12;  // of an IPv4 address in a GID

bool is_ipv4(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) && gid[10] == 0xFF &&
         gid[11] == 0xFF;
}

/// A copy of an address; null if there is none.
sockaddr* copy_of(const sockaddr* address, socklen_t bytes) {
  if (address == nullptr || bytes == 0) return nullptr;
  auto* const copy = new std::uint8_t[sizeof(sockaddr_storage)]();
  std::memcpy(copy, address, std::min<std::size_t>(bytes, sizeof(sockaddr_storage)));
  return reinterpret_cast<sockaddr*>(copy);
}

void release(const sockaddr* address) { delete[] reinterpret_cast<const std::uint8_t*>(address); }

}  // namespace

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(*address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(*address).sin6_addr);
}

/// Who means this host, means its own address.
Result<Gid> gid_of(const sockaddr* address) {
  Gid gid{};
  if (address->sa_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(*address);
    if (in.sin_addr.s_addr == INADDR_ANY) return gid;
    if (is_loopback(address)) {
      const Device* const device = Device::get();
      return device != nullptr ? device->own_address(true) : Result<Gid>(Error::kDeviceNotFound);
    }
    gid[10] = gid[11] = 0xFF;
    std::memcpy(&gid[kMappedAt], &in.sin_addr, sizeof in.sin_addr);
    return gid;
  }
  if (address->sa_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(*address);
    if (is_loopback(address)) {
      const Device* const device = Device::get();
      return device != nullptr ? device->own_address(false) : Result<Gid>(Error::kDeviceNotFound);
    }
    std::memcpy(gid.data(), &in6.sin6_addr, gid.size());
    return gid;
  }
  return Error::kInvalidParameter;
}

std::uint16_t port_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  if (address->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
  return 0;
}

socklen_t bytes_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) return sizeof(sockaddr_in);
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

void put_address(sockaddr_storage& to, const Gid& gid, std::uint16_t port) {
  to = {};
  if (is_ipv4(gid)) {
    auto& in = reinterpret_cast<sockaddr_in&>(to);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, &gid[kMappedAt], sizeof in.sin_addr);
    return;
  }
  auto& in6 = reinterpret_cast<sockaddr_in6&>(to);
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  std::memcpy(&in6.sin6_addr, gid.data(), gid.size());
}

}  // namespace rnic::rdmacm

using namespace rnic::rdmacm;

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** result) {
  if (result == nullptr ||
      (node == nullptr && service == nullptr && (hints == nullptr || hints->ai_src_addr == nullptr)))
    return refuse(EINVAL);
  return guarded([&] {
    const rdma_addrinfo none{};
    const rdma_addrinfo& wanted = hints != nullptr ? *hints : none;
    const bool passive = (wanted.ai_flags & RAI_PASSIVE) != 0;
    addrinfo ask{};
    ask.ai_family = (wanted.ai_flags & RAI_FAMILY) != 0 ? wanted.ai_family : AF_UNSPEC;
    ask.ai_flags = (passive ? AI_PASSIVE : 0) | ((wanted.ai_flags & RAI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
    const bool datagram = wanted.ai_port_space == RDMA_PS_UDP || wanted.ai_qp_type == IBV_QPT_UD;
    ask.ai_socktype = datagram ? SOCK_DGRAM : SOCK_STREAM;
    addrinfo* found = nullptr;
    const rnic::Uncancelled uncancelled;
    if (const int error = getaddrinfo(node, service, &ask, &found); error != 0) {
      // As the C library's callers of this one expect: an EAI number, or -1 and errno.
      if (error == EAI_SYSTEM) return -1;
      errno = error == EAI_MEMORY ? ENOMEM : ENODATA;
      return error;
    }
    auto* const info = new rdma_addrinfo();
    *result = info;
    info->ai_flags = wanted.ai_flags;
    info->ai_family = found->ai_family;
    info->ai_port_space = wanted.ai_port_space != 0 ? wanted.ai_port_space : datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
    info->ai_qp_type = wanted.ai_qp_type != 0 ? wanted.ai_qp_type : datagram ? IBV_QPT_UD : IBV_QPT_RC;
    sockaddr* const address = copy_of(found->ai_addr, found->ai_addrlen);
    if (passive) {
      info->ai_src_addr = address;
      info->ai_src_len = found->ai_addrlen;
    } else {
      info->ai_dst_addr = address;
      info->ai_dst_len = found->ai_addrlen;
      info->ai_src_addr = copy_of(wanted.ai_src_addr, wanted.ai_src_len);
      info->ai_src_len = info->ai_src_addr != nullptr ? wanted.ai_src_len : 0;
    }
    freeaddrinfo(found);
    return 0;
  });
}

void rdma_freeaddrinfo(rdma_addrinfo* info) {
  while (info != nullptr) {
    rdma_addrinfo* const next = info->ai_next;
    release(info->ai_src_addr);
    release(info->ai_dst_addr);
    delete info;
    info = next;
  }
}

__be16 rdma_get_src_port(rdma_cm_id* id) { return htons(port_of(&id->route.addr.src_addr)); }

__be16 rdma_get_dst_port(rdma_cm_id* id) { return htons(port_of(&id->route.addr.dst_addr)); }

}  // extern "C"
