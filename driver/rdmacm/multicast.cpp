// Multicast groups of ids for datagrams. A group is known by its IP address: a switch brings its frames everywhere, and
// nobody has to be asked.
#include <algorithm>
#include <cstring>

#include "driver/management.hpp"
#include "driver/rdmacm/objects.hpp"

namespace rnic::rdmacm {
namespace {

constexpr std::uint8_t kHopLimit = 64;
constexpr std::size_t kIndexAt = 17;  // in the event's data: the lower byte of the place of the own address

auto find(std::vector<Id::Join>& joins, const Gid& group) {
  return std::find_if(joins.begin(), joins.end(), [&](const Id::Join& join) { return join.group == group; });
}

ibv_gid ibv_gid_of(const Gid& group) {
  ibv_gid gid;
  std::memcpy(gid.raw, group.data(), sizeof gid.raw);
  return gid;
}

/// 0, or -1 with errno set.
int join(rdma_cm_id* face, const sockaddr* address, bool only_sends, void* context) {
  if (face == nullptr || address == nullptr || bytes_of(address) == 0) return refuse(EINVAL);
  Id& id = Id::of(face);
  const auto group = gid_of(address);
  if (!group) return refuse(group.error());
  return guarded([&] {
    {
      const std::lock_guard lock(id.mutex);
      if (find(id.joins, *group) != id.joins.end()) return refuse(EADDRINUSE);
      id.joins.push_back({.group = *group, .context = context, .only_sends = only_sends});
    }
    const auto joined = Device::get()->port().call(rnic::calls::JoinGroup{.group = *group, .endpoint = id.endpoint});
    {
      const std::lock_guard lock(id.mutex);
      const auto own = find(id.joins, *group);
      if (!joined) {
        if (own != id.joins.end()) id.joins.erase(own);
        return refuse(joined.error());
      }
    }
    return complete(id);
  });
}

}  // namespace

void describe_group(Event& of, Id& id) {
  Gid group;
  std::copy_n(of.data.begin(), group.size(), group.begin());
  const std::lock_guard lock(id.mutex);
  rdma_cm_event& event = of.face;
  rdma_ud_param& ud = event.param.ud;
  ud = {};
  const auto found = find(id.joins, group);
  if (found == id.joins.end()) {
    event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
    event.status = -ENOENT;
    return;
  }
  ud.private_data = found->context;
  ud.qp_num = kMulticastQpn;
  ud.qkey = RDMA_UDP_QKEY;
  ud.ah_attr.is_global = 1;
  ud.ah_attr.port_num = 1;
  ud.ah_attr.grh.dgid = ibv_gid_of(group);
  ud.ah_attr.grh.sgid_index = of.data[kIndexAt];
  ud.ah_attr.grh.hop_limit = kHopLimit;
  if (id.face.qp == nullptr || found->only_sends || found->attached) return;
  const ibv_gid gid = ibv_gid_of(group);
  if (const int error = ibv_attach_mcast(id.face.qp, &gid, 0); error != 0) {
    event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
    event.status = -error;
    return;
  }
  found->attached = true;
}

void detach_all(Id& id) {
  const std::lock_guard lock(id.mutex);
  for (Id::Join& join : id.joins) {
    const ibv_gid gid = ibv_gid_of(join.group);
    if (std::exchange(join.attached, false)) static_cast<void>(ibv_detach_mcast(id.face.qp, &gid, 0));
  }
}

}  // namespace rnic::rdmacm

using namespace rnic::rdmacm;

extern "C" {

int rdma_join_multicast(rdma_cm_id* face, sockaddr* address, void* context) {
  return join(face, address, false, context);
}

int rdma_join_multicast_ex(rdma_cm_id* face, rdma_cm_join_mc_attr_ex* attr, void* context) {
  constexpr std::uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr == nullptr || attr->comp_mask != kNeeded) return refuse(EINVAL);
  const bool only_sends = attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
  if (!only_sends && attr->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER) return refuse(EINVAL);
  return join(face, attr->addr, only_sends, context);
}

int rdma_leave_multicast(rdma_cm_id* face, sockaddr* address) {
  if (face == nullptr || address == nullptr || bytes_of(address) == 0) return refuse(EINVAL);
  Id& id = Id::of(face);
  const auto group = gid_of(address);
  if (!group) return refuse(group.error());
  const std::lock_guard lock(id.mutex);
  const auto found = find(id.joins, *group);
  if (found == id.joins.end()) return refuse(EADDRNOTAVAIL);
  int error = 0;
  const ibv_gid gid = ibv_gid_of(*group);
  if (found->attached && id.face.qp != nullptr) error = ibv_detach_mcast(id.face.qp, &gid, 0);
  id.joins.erase(found);
  return error == 0 ? 0 : refuse(error);
}

}  // extern "C"
