// rdma_create_ep and what belongs to it: ids whose calls wait.
#include "driver/rdmacm/objects.hpp"

using namespace rnic::rdmacm;

namespace {

constexpr int kPatienceMs = 2000;

int begin(rdma_cm_id* face, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* qp) {
  Id& id = Id::of(face);
  if ((info.ai_flags & RAI_PASSIVE) != 0) {
    if (rdma_bind_addr(face, info.ai_src_addr) != 0) return -1;
    if (qp != nullptr) id.request_qp = *qp;
    id.request_pd = face->pd = pd;
    return 0;
  }
  if (rdma_resolve_addr(face, info.ai_src_addr, info.ai_dst_addr, kPatienceMs) != 0) return -1;
  if (rdma_resolve_route(face, kPatienceMs) != 0) return -1;
  const auto* const data = static_cast<const std::uint8_t*>(info.ai_connect);
  if (data != nullptr) id.connect_data.assign(data, data + info.ai_connect_len);
  if (qp == nullptr) return 0;
  qp->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
  return rdma_create_qp(face, pd, qp);
}

}  // namespace

extern "C" {

int rdma_create_ep(rdma_cm_id** result, rdma_addrinfo* info, ibv_pd* pd, ibv_qp_init_attr* qp) {
  if (result == nullptr || info == nullptr) return refuse(EINVAL);
  return guarded([&] {
    rdma_cm_id* face = nullptr;
    if (rdma_create_id(nullptr, &face, nullptr, static_cast<rdma_port_space>(info->ai_port_space)) != 0) return -1;
    face->qp_type = static_cast<ibv_qp_type>(info->ai_qp_type);
    if (begin(face, *info, pd, qp) != 0) {
      const int error = errno;
      rdma_destroy_ep(face);
      return refuse(error);
    }
    *result = face;
    return 0;
  });
}

void rdma_destroy_ep(rdma_cm_id* face) {
  if (face == nullptr) return;
  rdma_destroy_qp(face);
  rdma_destroy_srq(face);
  rdma_destroy_id(face);
}

int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** result) {
  if (listener == nullptr || result == nullptr || !Id::of(listener).synchronous) return refuse(EINVAL);
  Id& of = Id::of(listener);
  if (complete(of) != 0) return -1;
  rdma_cm_event* const event = listener->event;
  if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) return refuse(EINVAL);
  rdma_cm_id* const face = event->id;
  listener->event = nullptr;
  int done = 0;
  if (of.request_qp) {
    ibv_qp_init_attr qp = *of.request_qp;
    qp.qp_type = listener->qp_type;
    done = rdma_create_qp(face, of.request_pd, &qp);
  }
  // Its event is the request, until its next call; the listener counts it.
  if (done == 0) done = rdma_migrate_id(face, nullptr);
  if (done != 0) {
    const int error = errno;
    rdma_ack_cm_event(event);
    rdma_destroy_ep(face);
    return refuse(error);
  }
  face->event = event;
  *result = face;
  return 0;
}

}  // extern "C"
