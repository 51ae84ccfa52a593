// Ids: their making and end, addresses, routes, listening.
#include <cstring>

#include "driver/rdmacm/objects.hpp"
#include "driver/unnoticed.hpp"

namespace rnic::rdmacm {
namespace {

void end_endpoint(Device& device, calls::Handle endpoint) {
  const auto kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint);
  static_cast<void>(device.port().call(calls::Destroy{.object = endpoint, .kind = kind}).ok());
}

/// For a bound address: the device is known, unless it is for all.
void show_device(Id& id) {
  Device* const device = Device::get();
  id.face.verbs = device->verbs();
  id.face.port_num = 1;
}

}  // namespace

Ids& Ids::all() {
  static auto* const ids = new Ids();  // outlives threads that still wait when the program ends
  return *ids;
}

void Ids::add(Id& id) {
  const std::lock_guard lock(mutex_);
  ids_[id.endpoint] = &id;
}

void Ids::remove(const Id& id) {
  const std::lock_guard lock(mutex_);
  ids_.erase(id.endpoint);
}

Id* Ids::hold(calls::Handle endpoint) {
  const std::lock_guard lock(mutex_);
  const auto found = ids_.find(endpoint);
  if (found == ids_.end()) return nullptr;
  const std::lock_guard of_id(found->second->mutex);
  ++found->second->events;
  return found->second;
}

Id* make_id(Device& device, rdma_event_channel* channel, void* context, rdma_port_space space, ibv_qp_type type,
            calls::Handle endpoint) {
  auto* const id = new Id();
  id->face.context = context;
  id->face.ps = space;
  id->face.qp_type = type;
  id->synchronous = channel == nullptr;
  id->face.channel = channel != nullptr ? channel : make_channel(device);
  if (id->face.channel == nullptr) {
    delete id;
    return nullptr;
  }
  id->endpoint = endpoint;
  id->receive_psn = draw_psn();  // known before it accepts, to who takes a queue pair of his own through its states
  if (endpoint == 0) {
    const auto made = device.port().call(calls::CreateEndpoint{.channel = Channel::of(id->face.channel).handle,
                                                               .port_space = static_cast<std::uint16_t>(space)});
    if (!made) {
      if (id->synchronous) end_channel(device, id->face.channel);
      delete id;
      static_cast<void>(refuse(made.error()));
      return nullptr;
    }
    id->endpoint = made->endpoint;
  }
  Ids::all().add(*id);
  return id;
}

Result<calls::QueryEndpoint::Answer> query(const Id& id) {
  return Device::get()->port().call(calls::QueryEndpoint{.endpoint = id.endpoint});
}

int show_addresses(Id& id) {
  const auto known = query(id);
  if (!known) return refuse(known.error());
  rdma_route& route = id.face.route;
  const bool local = known->local != Gid{};
  // A listener for all addresses keeps the family that it was bound with.
  if (local) {
    put_address(route.addr.src_storage, known->local, known->local_port);
  } else if (route.addr.src_addr.sa_family == AF_INET6) {
    route.addr.src_sin6.sin6_port = htons(known->local_port);
  } else {
    route.addr.src_sin.sin_port = htons(known->local_port);
  }
  if (local) show_device(id);
  if (known->remote == Gid{}) return 0;
  put_address(route.addr.dst_storage, known->remote, known->remote_port);
  auto& ib = route.addr.addr.ibaddr;
  std::memcpy(ib.sgid.raw, known->local.data(), sizeof ib.sgid.raw);
  std::memcpy(ib.dgid.raw, known->remote.data(), sizeof ib.dgid.raw);
  ib.pkey = htons(0xFFFF);
  id.path.sgid = ib.sgid;
  id.path.dgid = ib.dgid;
  id.path.pkey = ib.pkey;
  id.path.mtu = known->path_mtu;
  id.path.hop_limit = known->hop_limit;
  id.path.traffic_class = known->traffic_class;
  route.path_rec = &id.path;
  route.num_paths = 1;
  return 0;
}

}  // namespace rnic::rdmacm

using namespace rnic::rdmacm;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space) {
  Device* const device = Device::get();
  if (device == nullptr) return -1;
  if (id == nullptr) return refuse(EINVAL);
  if (space != RDMA_PS_TCP && space != RDMA_PS_UDP) return refuse(EOPNOTSUPP);
  return guarded([&] {
    Id* const made = make_id(*device, channel, context, space, space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC, 0);
    if (made == nullptr) return -1;
    *id = &made->face;
    return 0;
  });
}

int rdma_destroy_id(rdma_cm_id* face) {
  Device* const device = Device::get();
  if (device == nullptr || face == nullptr) return refuse(EINVAL);
  Id* const id = &Id::of(face);
  const rnic::Uncancelled uncancelled;  // half an id would be left
  // From here on no event of it begins; then those that the program has must come back.
  end_endpoint(*device, id->endpoint);
  Ids::all().remove(*id);
  if (face->event != nullptr) rdma_ack_cm_event(face->event);
  {
    std::unique_lock lock(id->mutex);
    id->acknowledged.wait(lock, [&] { return id->events == 0; });
  }
  if (id->synchronous) end_channel(*device, face->channel);
  delete id;
  return 0;
}

int rdma_bind_addr(rdma_cm_id* face, sockaddr* address) {
  if (face == nullptr || address == nullptr || bytes_of(address) == 0) return refuse(EINVAL);
  Id& id = Id::of(face);
  const auto gid = gid_of(address);
  if (!gid) return refuse(gid.error());
  if (call(rnic::calls::BindEndpoint{.address = *gid, .endpoint = id.endpoint, .port = port_of(address)}) != 0)
    return -1;
  face->route.addr.src_storage = {};
  std::memcpy(&face->route.addr.src_storage, address, bytes_of(address));
  return show_addresses(id);
}

int rdma_resolve_addr(rdma_cm_id* face, sockaddr* source, sockaddr* destination, int) {
  if (face == nullptr || destination == nullptr || bytes_of(destination) == 0) return refuse(EINVAL);
  Id& id = Id::of(face);
  const auto to = gid_of(destination);
  if (!to) return refuse(to.error());
  Gid from{};
  if (source != nullptr && bytes_of(source) != 0) {
    const auto own = gid_of(source);
    if (!own) return refuse(own.error());
    from = *own;
    if (port_of(source) != 0 && rdma_bind_addr(face, source) != 0) return -1;
  }
  id.to_loopback = is_loopback(destination);
  // Before another thread can take the event.
  face->route.addr.dst_storage = {};
  std::memcpy(&face->route.addr.dst_storage, destination, bytes_of(destination));
  if (call(rnic::calls::ResolveAddress{
          .local = from, .remote = *to, .endpoint = id.endpoint, .remote_port = port_of(destination)}) != 0) {
    // No address of the port leads there.
    return errno == EADDRNOTAVAIL && source == nullptr ? refuse(ENETUNREACH) : -1;
  }
  return complete(id);
}

int rdma_resolve_route(rdma_cm_id* face, int) {
  if (face == nullptr) return refuse(EINVAL);
  Id& id = Id::of(face);
  if (call(rnic::calls::ResolveRoute{.endpoint = id.endpoint}) != 0) return -1;
  return complete(id);
}

int rdma_listen(rdma_cm_id* face, int backlog) {
  if (face == nullptr) return refuse(EINVAL);
  Id& id = Id::of(face);
  // Who is not bound gets a port for all addresses.
  const auto known = query(id);
  if (known && known->local_port == 0) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (rdma_bind_addr(face, reinterpret_cast<sockaddr*>(&any)) != 0) return -1;
  }
  return call(
      rnic::calls::Listen{.endpoint = id.endpoint, .backlog = backlog > 0 ? static_cast<std::uint32_t>(backlog) : 0});
}

int rdma_migrate_id(rdma_cm_id* face, rdma_event_channel* channel) {
  Device* const device = Device::get();
  if (device == nullptr || face == nullptr) return refuse(EINVAL);
  return guarded([&] {
    Id& id = Id::of(face);
    const bool synchronous = channel == nullptr;
    rdma_event_channel* const next = synchronous ? make_channel(*device) : channel;
    if (next == nullptr) return -1;
    if (call(rnic::calls::MoveEndpoint{.endpoint = id.endpoint, .channel = Channel::of(next).handle}) != 0) {
      const int error = errno;
      if (synchronous) end_channel(*device, next);
      return refuse(error);
    }
    if (id.synchronous) {
      if (face->event != nullptr) rdma_ack_cm_event(face->event);
      face->event = nullptr;
      end_channel(*device, face->channel);
    }
    id.synchronous = synchronous;
    face->channel = next;
    return 0;
  });
}

/// What the options would change nobody asks for yet: all ports and both families are always told apart.
int rdma_set_option(rdma_cm_id* face, int level, int option, void* value, std::size_t length) {
  if (face == nullptr || value == nullptr) return refuse(EINVAL);
  if (level != RDMA_OPTION_ID) return refuse(EOPNOTSUPP);
  switch (option) {
    case RDMA_OPTION_ID_TOS:
    case RDMA_OPTION_ID_ACK_TIMEOUT: return length == sizeof(std::uint8_t) ? 0 : refuse(EINVAL);
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY: return length == sizeof(int) ? 0 : refuse(EINVAL);
    default: return refuse(ENOSYS);
  }
}

}  // extern "C"
