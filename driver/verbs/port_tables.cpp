// GIDs and P_Keys of the port, and where frames for a GID go.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "driver/verbs/objects.hpp"
#include "driver/verbs/undeclared.hpp"

namespace rnic::verbs {
namespace {

/// What ibv_query_gid_type answers (the numbers of the gid_attrs files of Linux's sysfs).
enum class SysfsGidType : std::uint8_t { kIbRoceV1 = 0, kRoceV2 = 1 };

Result<ibv_gid_entry> gid_entry(Context& context, std::uint32_t port, std::uint32_t index) {
  if (port != kPort) return Error::kInvalidParameter;
  const auto gid = gid_at(context.process->port(), index);
  if (!gid) return gid.error();
  return ibv_gid_entry{
      .gid = *gid, .gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = 0};
}

Result<calls::QueryGid::Answer> entry_at(KernelPort& port, std::uint32_t index) {
  if (index > 0xFFFF) return Error::kInvalidParameter;
  auto answer = port.call(calls::QueryGid{.index = static_cast<std::uint16_t>(index)});
  if (answer && answer->type != static_cast<std::uint8_t>(calls::GidType::kRoceV2)) return Error::kNotFound;
  return answer;
}

/// -1, with errno set, as the functions of the first interface answer.
int minus_one(int code) {
  errno = code;
  return -1;
}

}  // namespace

std::uint32_t gid_table_length(const calls::QueryPort::Answer& port) {
  constexpr std::uint32_t kLeastLength = 16;
  return std::max<std::uint32_t>(port.gids, kLeastLength);
}

Result<ibv_gid> gid_at(KernelPort& port, std::uint32_t index) {
  const auto answer = entry_at(port, index);
  if (!answer) return answer.error();
  ibv_gid gid;
  std::memcpy(gid.raw, answer->gid.data(), sizeof gid.raw);
  return gid;
}

Result<std::uint16_t> vlan_at(KernelPort& port, std::uint32_t index) {
  const auto answer = entry_at(port, index);
  if (!answer) return answer.error();
  return answer->vlan;
}

bool is_ipv4_mapped(const ibv_gid& gid) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

Result<std::uint64_t> station_of(Context& context, const ibv_gid& gid) {
  calls::ResolveGid call;
  std::memcpy(call.gid.data(), gid.raw, sizeof gid.raw);
  const auto answer = context.process->call(call);
  if (!answer) return answer.error();
  return answer->mac;
}

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  auto& process = *Context::of(context).process;
  if (port != kPort || index < 0) return minus_one(EINVAL);
  const auto tables = process.call(rnic::calls::QueryPort{});
  if (!tables) return minus_one(errno_of(tables.error()));
  if (static_cast<std::uint32_t>(index) >= gid_table_length(*tables)) return minus_one(EINVAL);
  const auto found = gid_at(process.port(), static_cast<std::uint32_t>(index));
  // An entry that is empty is there, and 0.
  *gid = found ? *found : ibv_gid{};
  return found || found.error() == rnic::Error::kNotFound ? 0 : minus_one(errno_of(found.error()));
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                      std::uint32_t flags, std::size_t entry_size) {
  if (flags != 0) return EOPNOTSUPP;
  const auto found = gid_entry(Context::of(context), port, index);
  if (!found) return found.error() == rnic::Error::kNotFound ? ENODATA : errno_of(found.error());
  std::memset(entry, 0, entry_size);
  std::memcpy(entry, &*found, std::min(entry_size, sizeof *found));
  return 0;
}

/// Negative: an errno.
ssize_t _ibv_query_gid_table(ibv_context* face, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                             std::size_t entry_size) {
  if (flags != 0 || entry_size == 0) return -EOPNOTSUPP;
  auto& context = Context::of(face);
  const auto tables = context.process->call(rnic::calls::QueryPort{});
  if (!tables) return -errno_of(tables.error());
  std::size_t count = 0;
  auto* to = reinterpret_cast<std::byte*>(entries);
  for (std::uint32_t i = 0; i < tables->gids; ++i) {
    const auto found = gid_entry(context, kPort, i);
    if (!found) continue;
    if (count == most) return -EINVAL;
    std::memset(to, 0, entry_size);
    std::memcpy(to, &*found, std::min(entry_size, sizeof *found));
    to += entry_size;
    ++count;
  }
  return static_cast<ssize_t>(count);
}

int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  const auto found = gid_entry(Context::of(context), port, index);
  if (!found) return minus_one(found.error() == rnic::Error::kNotFound ? ENOENT : errno_of(found.error()));
  *type = static_cast<int>(SysfsGidType::kRoceV2);
  return 0;
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  if (port != kPort || index < 0 || index > 0xFFFF) return minus_one(EINVAL);
  const auto answer =
      Context::of(context).process->call(rnic::calls::QueryPkey{.index = static_cast<std::uint16_t>(index)});
  if (!answer) return minus_one(errno_of(answer.error()));
  if (answer->pkey == 0) return minus_one(EINVAL);
  *pkey = htons(answer->pkey);
  return 0;
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  __be16 at{};
  for (int i = 0; ibv_query_pkey(context, port, i, &at) == 0; ++i) {
    if (at == pkey) return i;
  }
  return -1;
}

int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attributes, std::uint8_t mac[ETHERNET_LL_SIZE],
                                std::uint16_t* vid) {
  constexpr std::uint16_t kNoVlan = 0xFFFF;
  const auto station = station_of(Context::of(context), attributes->grh.dgid);
  if (!station) return minus_one(station.error() == rnic::Error::kNotFound ? EHOSTUNREACH : errno_of(station.error()));
  for (unsigned i = 0; i < ETHERNET_LL_SIZE; ++i) mac[i] = static_cast<std::uint8_t>(*station >> 8 * (5 - i));
  const auto vlan = vlan_at(Context::of(context).process->port(), attributes->grh.sgid_index);
  if (vid != nullptr) *vid = vlan && *vlan != 0 ? *vlan : kNoVlan;
  return 0;
}

}  // extern "C"
