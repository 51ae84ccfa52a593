// Address handles.
#include <arpa/inet.h>

#include <cstring>

#include "driver/verbs/hint.hpp"
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

constexpr std::uint8_t kAhHopLimit = 64;
constexpr std::uint8_t kMostHops = 0xFF;

/// In the 40 bytes in front of a datagram (annex A17.4.5.1): 20 that are not used, and an IPv4 header.
struct Ipv4Header {
  std::uint8_t version_and_length;
  std::uint8_t type_of_service;
  std::uint8_t between[10];  ///< Length to checksum
  std::uint8_t source[4];
  std::uint8_t destination[4];
};
static_assert(sizeof(Ipv4Header) == 20 && sizeof(ibv_grh) == 40);

const std::uint8_t* second_half(const ibv_grh& grh) {
  return reinterpret_cast<const std::uint8_t*>(&grh) + sizeof(ibv_grh) - sizeof(Ipv4Header);
}

/// An IPv4 header proves itself by its checksum (RFC 791 3.1); otherwise all of it is an IPv6 header.
bool holds_ipv4(const ibv_grh& grh) {
  const std::uint8_t* const at = second_half(grh);
  if (*at != 0x45) return false;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < sizeof(Ipv4Header); i += 2) sum += std::uint32_t{at[i]} << 8 | at[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum == 0xFFFF;
}

ibv_gid mapped(const std::uint8_t address[4]) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xFF;
  std::memcpy(gid.raw + 12, address, 4);
  return gid;
}

struct Addresses {
  ibv_gid source{};
  ibv_gid destination{};
  std::uint32_t flow_label{};
  std::uint8_t traffic_class{};
};

Addresses addresses_of(const ibv_grh& grh) {
  if (holds_ipv4(grh)) {
    Ipv4Header header{};
    std::memcpy(&header, second_half(grh), sizeof header);
    return {mapped(header.source), mapped(header.destination), 0, header.type_of_service};
  }
  const std::uint32_t first = ntohl(grh.version_tclass_flow);
  return {grh.sgid, grh.dgid, first & 0xFFFFF, static_cast<std::uint8_t>(first >> 20)};
}

bool is_group(const ibv_gid& gid) { return gid.raw[0] == 0xFF || (is_ipv4_mapped(gid) && gid.raw[12] >> 4 == 0xE); }

/// The own address to which a datagram came; of one for a group, that of its kind.
Result<std::uint8_t> own_index(Context& context, const ibv_gid& gid) {
  if (is_group(gid)) return static_cast<std::uint8_t>(is_ipv4_mapped(gid) ? context.second_sgid : 0);
  const auto tables = context.process->call(calls::QueryPort{});
  if (!tables) return tables.error();
  for (unsigned i = 0; i < tables->gids && i <= 0xFF; ++i) {
    const auto own = gid_at(context.process->port(), i);
    if (own && std::memcmp(own->raw, gid.raw, sizeof gid.raw) == 0) return static_cast<std::uint8_t>(i);
  }
  return Error::kNotFound;
}

/// A UD queue pair has two addresses of its own; either may be of several VLANs.
bool is_own(Context& context, std::uint8_t index, bool second) {
  const std::uint16_t place = second ? context.second_sgid : 0;
  if (second && place == 0) return false;  // there is no IPv4 address
  if (index == place) return true;
  auto& port = context.process->port();
  const auto wanted = gid_at(port, index), has = gid_at(port, place);
  return wanted && has && std::memcmp(wanted->raw, has->raw, sizeof wanted->raw) == 0;
}

Result<umd::AddressHandle> core_of(Context& context, const ibv_ah_attr& a) {
  if (a.port_num != kPort) return Error::kInvalidParameter;
  if (a.is_global == 0) {
    hint_at_grh();
    return Error::kInvalidParameter;
  }
  const bool second = is_ipv4_mapped(a.grh.dgid);
  if (!is_own(context, a.grh.sgid_index, second)) return Error::kInvalidParameter;
  const auto vlan = vlan_at(context.process->port(), a.grh.sgid_index);
  if (!vlan) return vlan.error();
  const auto station = station_of(context, a.grh.dgid);
  if (!station) return station.error();
  umd::AddressHandle::Spec spec{.dest_mac = *station,
                                .traffic_class = a.grh.traffic_class,
                                .hop_limit = a.grh.hop_limit != 0 ? a.grh.hop_limit : kAhHopLimit,
                                .flow_label = a.grh.flow_label,
                                .second_source = second,
                                .vlan = *vlan,
                                .sl = priority_of(a.sl)};
  std::memcpy(spec.dest_ip.data(), a.grh.dgid.raw, sizeof a.grh.dgid.raw);
  return umd::AddressHandle::create(spec);
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  return or_null([&]() -> ibv_ah* {
    auto core = core_of(Context::of(pd->context), *attributes);
    if (!core) return refuse(core.error() == rnic::Error::kNotFound ? EHOSTUNREACH : errno_of(core.error()));
    auto* const ah = new Ah{.face = {.context = pd->context, .pd = pd, .handle = 0}, .core = core.take()};
    ++Pd::of(pd).users;
    return &ah->face;
  });
}

int ibv_destroy_ah(ibv_ah* face) {
  --Pd::of(face->pd).users;
  delete reinterpret_cast<Ah*>(face);
  return 0;
}

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attributes) {
  const auto refused = [](int code) {
    errno = code;
    return -1;
  };
  *attributes = {};
  attributes->dlid = wc->slid;
  attributes->sl = wc->sl;
  attributes->src_path_bits = wc->dlid_path_bits;
  attributes->port_num = port;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;
  const auto addresses = addresses_of(*grh);
  const auto index = own_index(Context::of(context), addresses.destination);
  if (!index) return refused(errno_of(index.error()));
  attributes->is_global = 1;
  attributes->grh = {.dgid = addresses.source,
                     .flow_label = addresses.flow_label,
                     .sgid_index = *index,
                     .hop_limit = kMostHops,
                     .traffic_class = addresses.traffic_class};
  return 0;
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attributes;
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attributes) != 0) return nullptr;
  return ibv_create_ah(pd, &attributes);
}

}  // extern "C"
