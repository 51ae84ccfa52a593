#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <vector>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/verbs/wait_descriptor.hpp"

// What stands behind the structures of rdma_cma.h. Each begins with the structure that the program sees, so its address
// is that of the object.

namespace rnic::rdmacm {

using Gid = std::array<std::uint8_t, 16>;  ///< As in kernel calls: IPv4 addresses IPv4-mapped

/// -1, with errno set.
[[nodiscard]] inline int refuse(int code) {
  errno = code;
  return -1;
}
[[nodiscard]] int refuse(Error error);

/// Runs `body`, which returns 0 or -1; a lack of memory inside is ENOMEM.
template <typename Body>
int guarded(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM);
  }
}

/// The device of this process's host, opened when the first of its ids, channels or lists needs it, for good.
class Device {
 public:
  /// Null, with errno set: there is none.
  static Device* get();

  [[nodiscard]] ibv_context* verbs() const { return verbs_; }
  [[nodiscard]] KernelPort& port() const { return port_; }
  [[nodiscard]] const ibv_device_attr& attributes() const { return attributes_; }
  /// A protection domain for those who bring none. Null, with errno set.
  [[nodiscard]] ibv_pd* pd();
  /// The first own address of that kind. Errors: kNotFound, those of the call.
  [[nodiscard]] Result<Gid> own_address(bool ipv4) const;

 private:
  Device(ibv_context* verbs, KernelPort& port, const ibv_device_attr& attributes)
      : verbs_(verbs), port_(port), attributes_(attributes) {}
  static Device* open();

  ibv_context* const verbs_;
  KernelPort& port_;
  const ibv_device_attr attributes_;
  std::mutex mutex_;
  ibv_pd* pd_{};
};

struct Id;

/// An event channel. Its events stay in the kernel driver until they are asked for.
struct Channel {
  rdma_event_channel face{};
  calls::Handle handle{};
  verbs::WaitDescriptor descriptor;

  static Channel& of(rdma_event_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
};

struct Id {
  rdma_cm_id face{};
  calls::Handle endpoint{};
  bool synchronous{};  ///< Calls wait for their events; the channel is its own
  std::mutex mutex;
  std::condition_variable acknowledged;
  unsigned events{};  ///< Given to the program and not acknowledged. Guarded by mutex
  /// What it asked for, or offers.
  rdma_conn_param wanted{};
  std::uint32_t receive_psn{};
  bool to_loopback{};  ///< It was resolved for 127.0.0.1 or ::1
  bool terms_known{};  ///< Of the passive side: accepted with `wanted`
  ibv_sa_path_rec path{};
  /// Of rdma_create_ep: what its requests get, and what it sends along.
  std::optional<ibv_qp_init_attr> request_qp;
  ibv_pd* request_pd{};
  std::vector<std::uint8_t> connect_data;
  bool own_send_cq{}, own_receive_cq{};
  /// A multicast group that it asked for.
  struct Join {
    Gid group{};
    void* context{};
    bool only_sends{};
    bool attached{};  ///< The queue pair
  };
  std::vector<Join> joins;  ///< Guarded by mutex

  static Id& of(rdma_cm_id* id) { return *reinterpret_cast<Id*>(id); }
  [[nodiscard]] bool is_datagram() const { return face.ps == RDMA_PS_UDP; }
};

/// Ids by their endpoints. Thread safe.
class Ids {
 public:
  static Ids& all();
  /// Throws std::bad_alloc.
  void add(Id& id);
  void remove(const Id& id);
  /// The id of an event that was just taken, which stays at least until it is acknowledged; null: it has gone.
  [[nodiscard]] Id* hold(calls::Handle endpoint);

 private:
  std::mutex mutex_;
  std::unordered_map<calls::Handle, Id*> ids_;
};

struct Event {
  rdma_cm_event face{};
  Id* id{};  ///< Whose events count it: of a request, the listener
  std::array<std::uint8_t, 224> data{};

  static Event& of(rdma_cm_event* event) { return *reinterpret_cast<Event*>(event); }
};

/// An id of an endpoint that there is, or, without one, of a new one. Null, with errno set; the endpoint is then gone.
Id* make_id(Device& device, rdma_event_channel* channel, void* context, rdma_port_space space, ibv_qp_type type,
            calls::Handle endpoint);
/// A channel of one id. Null, with errno set.
rdma_event_channel* make_channel(Device& device);
void end_channel(Device& device, rdma_event_channel* channel);

/// Brings up to date what the program sees of addresses and route. An errno; 0: done.
int show_addresses(Id& id);
/// Queries the endpoint.
[[nodiscard]] Result<calls::QueryEndpoint::Answer> query(const Id& id);

/// The call, for who needs no more of its answer than whether there is one. 0, or -1 with errno set.
template <typename Request>
int call(const Request& request) {
  Device* const device = Device::get();
  if (device == nullptr) return -1;
  const auto done = device->port().call(request);
  return done ? 0 : refuse(done.error());
}

/// For synchronous ids: waits for the event of what was begun, which is then the id's. -1, with errno set: it tells of
/// a failure. Others: 0.
int complete(Id& id);

// Queue pairs.
/// Takes the queue pair to the state that attributes of the connection allow. An errno; 0: done.
int make_initialized(Id& id);
int make_ready(Id& id);
int make_error(Id& id);

// Multicast.
/// What the event of a group says of it, from its data; the queue pair is attached.
void describe_group(Event& event, Id& id);
/// The queue pair leaves all groups.
void detach_all(Id& id);

/// A first PSN of the peer, at random.
[[nodiscard]] std::uint32_t draw_psn();

// Addresses.
[[nodiscard]] Result<Gid> gid_of(const sockaddr* address);
/// 127.0.0.0/8 or ::1.
[[nodiscard]] bool is_loopback(const sockaddr* address);
[[nodiscard]] std::uint16_t port_of(const sockaddr* address);
/// Bytes of an address, by its family; 0: of no family that is known.
[[nodiscard]] socklen_t bytes_of(const sockaddr* address);
void put_address(sockaddr_storage& to, const Gid& gid, std::uint16_t port);

}  // namespace rnic::rdmacm
