// Event channels and events.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>

#include "driver/rdmacm/objects.hpp"
#include "driver/verbs/hint.hpp"

namespace rnic::rdmacm {
namespace {

using calls::ConnectionEvent;

rdma_cm_event_type type_of(ConnectionEvent event, int& status) {
  switch (event) {
    case ConnectionEvent::kAddressResolved: return RDMA_CM_EVENT_ADDR_RESOLVED;
    case ConnectionEvent::kAddressError: status = -EHOSTUNREACH; return RDMA_CM_EVENT_ADDR_ERROR;
    case ConnectionEvent::kRouteResolved: return RDMA_CM_EVENT_ROUTE_RESOLVED;
    case ConnectionEvent::kConnectRequest: return RDMA_CM_EVENT_CONNECT_REQUEST;
    case ConnectionEvent::kConnectResponse: return RDMA_CM_EVENT_CONNECT_RESPONSE;
    case ConnectionEvent::kEstablished: return RDMA_CM_EVENT_ESTABLISHED;
    case ConnectionEvent::kRejected: return RDMA_CM_EVENT_REJECTED;
    case ConnectionEvent::kUnreachable: status = -ETIMEDOUT; return RDMA_CM_EVENT_UNREACHABLE;
    case ConnectionEvent::kDisconnected: return RDMA_CM_EVENT_DISCONNECTED;
    case ConnectionEvent::kTimeWaitExit: return RDMA_CM_EVENT_TIMEWAIT_EXIT;
    case ConnectionEvent::kGroupJoined: return RDMA_CM_EVENT_MULTICAST_JOIN;
    case ConnectionEvent::kDeviceRemoved:
    case ConnectionEvent::kNone: break;
  }
  return RDMA_CM_EVENT_DEVICE_REMOVAL;
}

/// A connection to 127.0.0.1 is one to the same host of the machine, where the server of another host does not listen.
void explain_loopback(const Id& id) {
  static std::atomic_flag given;
  const Device* const device = id.to_loopback ? Device::get() : nullptr;
  const auto own = device != nullptr ? device->own_address(true) : Result<Gid>(Error::kNotFound);
  if (!own) return;
  const auto* const ip = &own.value()[own.value().size() - 4];
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(),
                "localhost is the host of the machine that this program runs on (%u.%u.%u.%u), and no program there "
                "has accepted the connection. The first program of rnic exec --pair runs on host 0, whose address is "
                "10.0.0.1 unless the machine file says otherwise: use that instead of localhost",
                ip[0], ip[1], ip[2], ip[3]);
  verbs::hint(given, text.data());
}

/// What the event says of the peer: what it takes is what this side may send, and the other way round.
void describe_peer(Event& event, const Id& of, const calls::QueryEndpoint::Answer& known, std::uint8_t length) {
  const void* const data = length != 0 ? event.data.data() : nullptr;
  if (of.is_datagram()) {
    rdma_ud_param& ud = event.face.param.ud;
    ud.private_data = data;
    ud.private_data_len = length;
    ud.qp_num = known.remote_qpn;
    ud.qkey = known.qkey;
    ud.ah_attr = {};
    std::copy(known.remote.begin(), known.remote.end(), ud.ah_attr.grh.dgid.raw);
    ud.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(known.sgid_index);
    ud.ah_attr.grh.hop_limit = 64;
    ud.ah_attr.is_global = 1;
    ud.ah_attr.port_num = 1;
    return;
  }
  rdma_conn_param& connection = event.face.param.conn;
  connection.private_data = data;
  connection.private_data_len = length;
  connection.responder_resources = known.initiator_depth;
  connection.initiator_depth = known.responder_resources;
  connection.flow_control = known.flow_control;
  connection.retry_count = known.retry_count;
  connection.rnr_retry_count = known.rnr_retry;
  connection.srq = known.srq;
  connection.qp_num = known.remote_qpn;
}

/// An id for a request to a listener; 0, or -1 with errno set.
int take_request(Device& device, Id& listener, Event& event, calls::Handle incoming) {
  Id* const id =
      make_id(device, listener.face.channel, listener.face.context, listener.face.ps, listener.face.qp_type, incoming);
  if (id == nullptr) return -1;
  event.face.id = &id->face;
  event.face.listen_id = &listener.face;
  return show_addresses(*id);
}

/// The queue pair of who asked, when the peer has accepted: the program hears of it when data may be sent.
void finish_connecting(Event& event, Id& id) {
  if (id.face.qp == nullptr) return;
  int error = make_ready(id);
  if (error == 0 && call(calls::Establish{.endpoint = id.endpoint}) != 0) error = errno;
  event.face.event = error == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_ERROR;
  event.face.status = -error;
  if (error != 0) {
    static_cast<void>(make_error(id));
    static_cast<void>(call(calls::Reject{.endpoint = id.endpoint}));
  }
}

/// Null: there was nothing to tell after all, or, with errno set, an error.
Event* make_event(Device& device, Id& id, bool& failed) {
  failed = true;
  const auto taken = device.port().call(calls::TakeConnectionEvent{.endpoint = id.endpoint});
  if (!taken) {
    // Not found: another thread has just destroyed the id, and its event is not told.
    failed = taken.error() != Error::kNotFound;
    if (failed) static_cast<void>(refuse(taken.error()));
    return nullptr;
  }
  failed = false;
  const auto type = static_cast<ConnectionEvent>(taken->type);
  if (type == ConnectionEvent::kNone) return nullptr;
  auto* const event = new Event();
  event->id = &id;
  event->face.id = &id.face;
  event->face.event = type_of(type, event->face.status);
  event->data = taken->data;
  if (type == ConnectionEvent::kRejected) event->face.status = taken->reason;
  if (type == ConnectionEvent::kRejected || type == ConnectionEvent::kUnreachable) explain_loopback(id);
  Id* about = &id;
  if (type == ConnectionEvent::kConnectRequest) {
    if (take_request(device, id, *event, taken->incoming) != 0) {
      delete event;
      failed = true;
      return nullptr;
    }
    about = &Id::of(event->face.id);
  } else {
    static_cast<void>(show_addresses(id));
  }
  if (const auto known = query(*about)) describe_peer(*event, *about, *known, taken->data_length);
  if (type == ConnectionEvent::kGroupJoined) describe_group(*event, id);
  if (type == ConnectionEvent::kConnectResponse) finish_connecting(*event, id);
  return event;
}

}  // namespace

rdma_event_channel* make_channel(Device& device) {
  auto* const channel = new Channel();
  const auto made = device.port().call(calls::CreateChannel{});
  Result<void> opened = made ? Result<void>() : made.error();
  if (made) {
    channel->handle = made->channel;
    opened = channel->descriptor.open();
  }
  if (opened) {
    const auto descriptor = device.port().descriptor(channel->handle);
    opened = descriptor ? channel->descriptor.add(*descriptor) : descriptor.error();
  }
  if (!opened) {
    end_channel(device, &channel->face);
    static_cast<void>(refuse(opened.error()));
    return nullptr;
  }
  channel->face.fd = channel->descriptor.get();
  return &channel->face;
}

void end_channel(Device& device, rdma_event_channel* face) {
  auto* const channel = &Channel::of(face);
  const auto kind = static_cast<std::uint8_t>(calls::ObjectKind::kChannel);
  if (channel->handle != 0)
    static_cast<void>(device.port().call(calls::Destroy{.object = channel->handle, .kind = kind}).ok());
  delete channel;
}

int complete(Id& id) {
  if (!id.synchronous) return 0;
  if (id.face.event != nullptr) {
    rdma_ack_cm_event(id.face.event);
    id.face.event = nullptr;
  }
  if (rdma_get_cm_event(id.face.channel, &id.face.event) != 0) return -1;
  const int status = id.face.event->status;
  if (status == 0) return 0;
  if (id.face.event->event == RDMA_CM_EVENT_REJECTED) return refuse(ECONNREFUSED);
  return refuse(status < 0 ? -status : status);
}

}  // namespace rnic::rdmacm

using namespace rnic::rdmacm;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  Device* const device = Device::get();
  if (device == nullptr) return nullptr;
  try {
    return make_channel(*device);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return nullptr;
  }
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  if (Device* const device = Device::get(); device != nullptr) end_channel(*device, channel);
}

int rdma_get_cm_event(rdma_event_channel* face, rdma_cm_event** event) {
  pthread_testcancel();  // as `read` of what is there
  Device* const device = Device::get();
  if (device == nullptr) return -1;
  if (face == nullptr || event == nullptr) return refuse(EINVAL);
  Channel& channel = Channel::of(face);
  return guarded([&] {
    for (;;) {
      const auto read = device->port().call(rnic::calls::ReadEvents{.channel = channel.handle, .most = 1});
      // Not found: another thread has just destroyed the channel, which on Linux closes the descriptor that this reads.
      if (!read) return read.error() == rnic::Error::kNotFound ? refuse(EBADF) : refuse(read.error());
      if (read->count == 0) {
        if (const int error = channel.descriptor.wait(); error != 0) return refuse(error);
        continue;
      }
      Id* const id = Ids::all().hold(read->events[0].object);
      if (id == nullptr) continue;
      bool failed = false;
      Event* const made = make_event(*device, *id, failed);
      if (made != nullptr) {
        *event = &made->face;
        return 0;
      }
      const int error = errno;
      {
        const std::lock_guard lock(id->mutex);
        --id->events;
        id->acknowledged.notify_all();
      }
      if (failed) return refuse(error);
    }
  });
}

int rdma_ack_cm_event(rdma_cm_event* face) {
  if (face == nullptr) return refuse(EINVAL);
  Event* const event = &Event::of(face);
  {
    const std::lock_guard lock(event->id->mutex);
    --event->id->events;
    event->id->acknowledged.notify_all();
  }
  delete event;
  return 0;
}

const char* rdma_event_str(rdma_cm_event_type event) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: return "RDMA_CM_EVENT_ADDR_RESOLVED";
    case RDMA_CM_EVENT_ADDR_ERROR: return "RDMA_CM_EVENT_ADDR_ERROR";
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return "RDMA_CM_EVENT_ROUTE_RESOLVED";
    case RDMA_CM_EVENT_ROUTE_ERROR: return "RDMA_CM_EVENT_ROUTE_ERROR";
    case RDMA_CM_EVENT_CONNECT_REQUEST: return "RDMA_CM_EVENT_CONNECT_REQUEST";
    case RDMA_CM_EVENT_CONNECT_RESPONSE: return "RDMA_CM_EVENT_CONNECT_RESPONSE";
    case RDMA_CM_EVENT_CONNECT_ERROR: return "RDMA_CM_EVENT_CONNECT_ERROR";
    case RDMA_CM_EVENT_UNREACHABLE: return "RDMA_CM_EVENT_UNREACHABLE";
    case RDMA_CM_EVENT_REJECTED: return "RDMA_CM_EVENT_REJECTED";
    case RDMA_CM_EVENT_ESTABLISHED: return "RDMA_CM_EVENT_ESTABLISHED";
    case RDMA_CM_EVENT_DISCONNECTED: return "RDMA_CM_EVENT_DISCONNECTED";
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return "RDMA_CM_EVENT_DEVICE_REMOVAL";
    case RDMA_CM_EVENT_MULTICAST_JOIN: return "RDMA_CM_EVENT_MULTICAST_JOIN";
    case RDMA_CM_EVENT_MULTICAST_ERROR: return "RDMA_CM_EVENT_MULTICAST_ERROR";
    case RDMA_CM_EVENT_ADDR_CHANGE: return "RDMA_CM_EVENT_ADDR_CHANGE";
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: return "RDMA_CM_EVENT_TIMEWAIT_EXIT";
  }
  return "UNKNOWN EVENT";
}

}  // extern "C"
