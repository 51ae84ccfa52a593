// Connections: made, accepted, refused, ended.
#include <algorithm>
#include <cstring>
#include <random>

#include "driver/rdmacm/objects.hpp"

namespace rnic::rdmacm {
namespace {

constexpr std::uint8_t kRetries = 7;

/// As many as the device has, where a program asks for the most.
std::uint8_t resources(std::uint8_t asked, int most) {
  return static_cast<std::uint8_t>(std::min<int>(asked, std::min(most, 0xFF)));
}

/// What the program asks for, or, if it says nothing, all that there is.
rdma_conn_param wanted_of(const rdma_conn_param* given) {
  rdma_conn_param wanted{};
  wanted.responder_resources = wanted.initiator_depth = RDMA_MAX_RESP_RES;
  wanted.retry_count = wanted.rnr_retry_count = kRetries;
  if (given != nullptr) wanted = *given;
  const ibv_device_attr& device = Device::get()->attributes();
  wanted.responder_resources = resources(wanted.responder_resources, device.max_qp_rd_atom);
  wanted.initiator_depth = resources(wanted.initiator_depth, device.max_qp_init_rd_atom);
  wanted.retry_count = std::min(wanted.retry_count, kRetries);
  wanted.rnr_retry_count = std::min(wanted.rnr_retry_count, kRetries);
  return wanted;
}

calls::ConnectionTerms terms_of(const Id& id) {
  const bool external = id.face.qp == nullptr;
  return {.qp = external ? 0 : id.face.qp->handle,
          .receive_psn = id.receive_psn,
          .qkey = RDMA_UDP_QKEY,
          .qpn = external ? id.wanted.qp_num & 0xFFFFFF : 0,
          .responder_resources = id.wanted.responder_resources,
          .initiator_depth = id.wanted.initiator_depth,
          .retry_count = id.wanted.retry_count,
          .rnr_retry = id.wanted.rnr_retry_count,
          .flow_control = id.wanted.flow_control != 0,
          .srq = external ? id.wanted.srq != 0 : id.face.srq != nullptr || id.face.qp->srq != nullptr};
}

template <std::size_t Room>
bool put_data(std::array<std::uint8_t, Room>& to, std::uint8_t& length, const void* data, std::size_t bytes) {
  if (bytes > Room) return false;
  if (bytes != 0) std::memcpy(to.data(), data, bytes);
  length = static_cast<std::uint8_t>(bytes);
  return true;
}

}  // namespace

std::uint32_t draw_psn() {
  static std::random_device source;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return source() & 0xFFFFFF;
}

}  // namespace rnic::rdmacm

using namespace rnic::rdmacm;

extern "C" {

int rdma_connect(rdma_cm_id* face, rdma_conn_param* given) {
  // Without a queue pair of the id the program says which one of its own it means.
  if (face == nullptr || (face->qp == nullptr && given == nullptr)) return refuse(EINVAL);
  return guarded([&] {
    Id& id = Id::of(face);
    id.wanted = wanted_of(given);
    id.receive_psn = draw_psn();
    rnic::calls::Connect connect{.terms = terms_of(id), .endpoint = id.endpoint};
    // What rdma_create_ep was given to send stands in front.
    std::vector<std::uint8_t> data = id.connect_data;
    const auto* const own = static_cast<const std::uint8_t*>(id.wanted.private_data);
    if (own != nullptr) data.insert(data.end(), own, own + id.wanted.private_data_len);
    if (!put_data(connect.data, connect.data_length, data.data(), data.size())) return refuse(EINVAL);
    if (call(connect) != 0) return -1;
    return complete(id);
  });
}

int rdma_accept(rdma_cm_id* face, rdma_conn_param* given) {
  if (face == nullptr || (face->qp == nullptr && given == nullptr)) return refuse(EINVAL);
  Id& id = Id::of(face);
  const auto known = query(id);
  if (!known) return refuse(known.error());
  id.wanted = wanted_of(given);
  // No more than the peer sends, and takes.
  if (given == nullptr || given->responder_resources == RDMA_MAX_RESP_RES)
    id.wanted.responder_resources = std::min(id.wanted.responder_resources, known->initiator_depth);
  if (given == nullptr || given->initiator_depth == RDMA_MAX_INIT_DEPTH)
    id.wanted.initiator_depth = std::min(id.wanted.initiator_depth, known->responder_resources);
  id.terms_known = true;
  rnic::calls::Accept accept{.terms = terms_of(id), .endpoint = id.endpoint};
  if (!put_data(accept.data, accept.data_length, id.wanted.private_data, id.wanted.private_data_len))
    return refuse(EINVAL);
  if (!id.is_datagram() && face->qp != nullptr) {
    if (const int error = make_ready(id); error != 0) return refuse(error);
  }
  if (call(accept) != 0) return -1;
  return id.is_datagram() ? 0 : complete(id);
}

int rdma_reject(rdma_cm_id* face, const void* data, std::uint8_t length) {
  if (face == nullptr) return refuse(EINVAL);
  rnic::calls::Reject reject{.endpoint = Id::of(face).endpoint};
  if (!put_data(reject.data, reject.data_length, data, length)) return refuse(EINVAL);
  return call(reject);
}

int rdma_establish(rdma_cm_id* face) {
  if (face == nullptr) return refuse(EINVAL);
  return call(rnic::calls::Establish{.endpoint = Id::of(face).endpoint});
}

int rdma_disconnect(rdma_cm_id* face) {
  if (face == nullptr) return refuse(EINVAL);
  Id& id = Id::of(face);
  if (face->qp != nullptr) {
    if (const int error = make_error(id); error != 0) return refuse(error);
  }
  if (call(rnic::calls::Disconnect{.endpoint = id.endpoint}) != 0) return -1;
  return complete(id);
}

/// The kernel driver sees for itself that a peer's packets come.
int rdma_notify(rdma_cm_id* face, ibv_event_type) { return face != nullptr ? 0 : refuse(EINVAL); }

int rdma_reject_ece(rdma_cm_id* face, const void* data, std::uint8_t length) { return rdma_reject(face, data, length); }

/// No vendor's enhancements are known here.
int rdma_get_remote_ece(rdma_cm_id* face, ibv_ece* ece) {
  if (face == nullptr || ece == nullptr) return refuse(EINVAL);
  *ece = {};
  return 0;
}

int rdma_set_local_ece(rdma_cm_id* face, ibv_ece* ece) {
  if (face == nullptr || ece == nullptr) return refuse(EINVAL);
  return ece->vendor_id == 0 ? 0 : refuse(EOPNOTSUPP);
}

}  // extern "C"
