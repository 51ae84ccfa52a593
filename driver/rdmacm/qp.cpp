// Queue pairs of ids.
#include <algorithm>
#include <cstring>

#include "driver/rdmacm/objects.hpp"

namespace rnic::rdmacm {
namespace {

constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t kSegmentBytes = sizeof(ibv_sge), kMostFreeInline = 4 * kSegmentBytes;
constexpr std::uint8_t kRnrTimer = 12;  // 0.64 ms (InfiniBand specification 9.7.5.2.8)

void set_initialized(const Id& id, const calls::QueryEndpoint::Answer& known, ibv_qp_attr& attr, int& mask) {
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = known.pkey_index;
  attr.port_num = 1;
  mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.is_datagram()) {
    attr.qkey = RDMA_UDP_QKEY;
    mask |= IBV_QP_QKEY;
  } else {
    attr.qp_access_flags = kAllAccess;
    mask |= IBV_QP_ACCESS_FLAGS;
  }
}

/// Reads that this side takes, and sends: who accepts says it, to who asked the answer does.
std::pair<std::uint8_t, std::uint8_t> read_limits(const Id& id, const calls::QueryEndpoint::Answer& known) {
  if (id.terms_known) return {id.wanted.responder_resources, id.wanted.initiator_depth};
  return {std::min(id.wanted.responder_resources, known.initiator_depth),
          std::min(id.wanted.initiator_depth, known.responder_resources)};
}

void set_receiving(const Id& id, const calls::QueryEndpoint::Answer& known, ibv_qp_attr& attr, int& mask) {
  attr.qp_state = IBV_QPS_RTR;
  mask = IBV_QP_STATE;
  if (id.is_datagram()) return;
  attr.path_mtu = static_cast<ibv_mtu>(known.path_mtu);
  attr.dest_qp_num = known.remote_qpn;
  attr.rq_psn = id.receive_psn;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  std::copy(known.remote.begin(), known.remote.end(), attr.ah_attr.grh.dgid.raw);
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(known.sgid_index);
  attr.ah_attr.grh.hop_limit = std::max<std::uint8_t>(known.hop_limit, 1);
  attr.ah_attr.grh.traffic_class = known.traffic_class;
  attr.ah_attr.grh.flow_label = known.flow_label;
  mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (id.face.qp_type == IBV_QPT_UC) return;
  attr.max_dest_rd_atomic = read_limits(id, known).first;
  attr.min_rnr_timer = kRnrTimer;
  mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

void set_sending(const Id& id, const calls::QueryEndpoint::Answer& known, ibv_qp_attr& attr, int& mask) {
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = known.send_psn;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (id.is_datagram() || id.face.qp_type == IBV_QPT_UC) return;
  attr.timeout = known.ack_timeout;
  attr.retry_cnt = known.retry_count;
  attr.rnr_retry = known.rnr_retry;
  attr.max_rd_atomic = read_limits(id, known).second;
  mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

/// A completion queue, with a channel, for who brings none. Null, with errno set.
ibv_cq* make_cq(Id& id, std::uint32_t entries, ibv_comp_channel*& channel) {
  channel = ibv_create_comp_channel(id.face.verbs);
  if (channel == nullptr) return nullptr;
  ibv_cq* const cq = ibv_create_cq(id.face.verbs, static_cast<int>(std::max(entries, 1U)), &id.face, channel, 0);
  if (cq == nullptr) {
    const int error = errno;
    ibv_destroy_comp_channel(channel);
    channel = nullptr;
    errno = error;
  } else {
    ibv_req_notify_cq(cq, 0);
  }
  return cq;
}

void end_cqs(Id& id) {
  const auto end = [](bool& own, ibv_cq*& cq, ibv_comp_channel*& channel) {
    if (!std::exchange(own, false)) return;
    ibv_destroy_cq(std::exchange(cq, nullptr));
    ibv_destroy_comp_channel(std::exchange(channel, nullptr));
  };
  end(id.own_send_cq, id.face.send_cq, id.face.send_cq_channel);
  end(id.own_receive_cq, id.face.recv_cq, id.face.recv_cq_channel);
}

/// Those that are not given. 0, or -1 with errno set.
int make_cqs(Id& id, ibv_qp_init_attr_ex& attr) {
  if (attr.recv_cq == nullptr && attr.srq == nullptr) {
    id.face.recv_cq = make_cq(id, attr.cap.max_recv_wr, id.face.recv_cq_channel);
    if (id.face.recv_cq == nullptr) return -1;
    id.own_receive_cq = true;
    attr.recv_cq = id.face.recv_cq;
  }
  if (attr.send_cq == nullptr) {
    id.face.send_cq = make_cq(id, attr.cap.max_send_wr, id.face.send_cq_channel);
    if (id.face.send_cq == nullptr) return -1;
    id.own_send_cq = true;
    attr.send_cq = id.face.send_cq;
  }
  if (attr.recv_cq == nullptr) attr.recv_cq = attr.send_cq;
  return 0;
}

int step(Id& id, ibv_qp_state state) {
  ibv_qp_attr attr{};
  int mask = 0;
  attr.qp_state = state;
  if (rdma_init_qp_attr(&id.face, &attr, &mask) != 0) return errno;
  return ibv_modify_qp(id.face.qp, &attr, mask);
}

}  // namespace

int make_initialized(Id& id) {
  int error = step(id, IBV_QPS_INIT);
  // Datagrams need no peer.
  if (error == 0 && id.is_datagram()) error = step(id, IBV_QPS_RTR);
  if (error == 0 && id.is_datagram()) error = step(id, IBV_QPS_RTS);
  return error;
}

int make_ready(Id& id) {
  const int error = step(id, IBV_QPS_RTR);
  return error != 0 ? error : step(id, IBV_QPS_RTS);
}

int make_error(Id& id) {
  if (id.face.qp == nullptr || id.is_datagram()) return 0;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(id.face.qp, &attr, IBV_QP_STATE);
}

}  // namespace rnic::rdmacm

using namespace rnic::rdmacm;

extern "C" {

int rdma_init_qp_attr(rdma_cm_id* face, ibv_qp_attr* attr, int* mask) {
  if (face == nullptr || attr == nullptr || mask == nullptr) return refuse(EINVAL);
  Id& id = Id::of(face);
  const auto known = query(id);
  if (!known) return refuse(known.error());
  switch (attr->qp_state) {
    case IBV_QPS_INIT: set_initialized(id, *known, *attr, *mask); return 0;
    case IBV_QPS_RTR: set_receiving(id, *known, *attr, *mask); return 0;
    case IBV_QPS_RTS: set_sending(id, *known, *attr, *mask); return 0;
    default: return refuse(EINVAL);
  }
}

int rdma_create_qp_ex(rdma_cm_id* face, ibv_qp_init_attr_ex* attr) {
  Device* const device = Device::get();
  if (device == nullptr || face == nullptr || attr == nullptr) return refuse(EINVAL);
  Id& id = Id::of(face);
  if (face->qp != nullptr) return refuse(EINVAL);
  if (face->verbs == nullptr) face->verbs = device->verbs();
  ibv_pd* pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr->pd : nullptr;
  if (pd == nullptr) pd = face->pd != nullptr ? face->pd : device->pd();
  if (pd == nullptr) return -1;
  if (pd->context != face->verbs) return refuse(EINVAL);
  const bool datagram = attr->qp_type == IBV_QPT_UD;
  if (datagram != id.is_datagram()) return refuse(EINVAL);
  attr->pd = pd;
  attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
  face->pd = pd;
  if (attr->srq == nullptr) attr->srq = face->srq;
  // Inline data as long as the segments have room for them, as other providers grant: programs count on it.
  const std::uint32_t room = std::min(attr->cap.max_send_sge * kSegmentBytes, kMostFreeInline);
  attr->cap.max_inline_data = std::max(attr->cap.max_inline_data, room);
  int done = make_cqs(id, *attr);
  if (done == 0) {
    face->qp = ibv_create_qp_ex(face->verbs, attr);
    done = face->qp != nullptr ? 0 : -1;
  }
  if (done == 0) {
    face->qp_type = attr->qp_type;
    if (const int error = make_initialized(id); error != 0) {
      ibv_destroy_qp(std::exchange(face->qp, nullptr));
      done = refuse(error);
    }
  }
  if (done != 0) {
    const int error = errno;
    end_cqs(id);
    return refuse(error);
  }
  return 0;
}

int rdma_create_qp(rdma_cm_id* face, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (attr == nullptr) return refuse(EINVAL);
  ibv_qp_init_attr_ex extended{};
  std::memcpy(&extended, attr, sizeof *attr);
  extended.comp_mask = pd != nullptr ? IBV_QP_INIT_ATTR_PD : 0;
  extended.pd = pd;
  const int done = rdma_create_qp_ex(face, &extended);
  // What was granted is shown to the caller.
  if (done == 0) std::memcpy(attr, &extended, sizeof *attr);
  return done;
}

void rdma_destroy_qp(rdma_cm_id* face) {
  if (face == nullptr || face->qp == nullptr) return;
  detach_all(Id::of(face));
  ibv_destroy_qp(std::exchange(face->qp, nullptr));
  end_cqs(Id::of(face));
}

int rdma_create_srq_ex(rdma_cm_id* face, ibv_srq_init_attr_ex* attr) {
  Device* const device = Device::get();
  if (device == nullptr || face == nullptr || attr == nullptr) return refuse(EINVAL);
  if (face->verbs == nullptr) face->verbs = device->verbs();
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->pd = face->pd != nullptr ? face->pd : device->pd();
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    if (attr->pd == nullptr) return -1;
  }
  ibv_srq* const srq = ibv_create_srq_ex(face->verbs, attr);
  if (srq == nullptr) return -1;
  face->pd = attr->pd;
  face->srq = srq;
  return 0;
}

int rdma_create_srq(rdma_cm_id* face, ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (attr == nullptr) return refuse(EINVAL);
  ibv_srq_init_attr_ex extended{};
  std::memcpy(&extended, attr, sizeof *attr);
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | (pd != nullptr ? IBV_SRQ_INIT_ATTR_PD : 0);
  extended.srq_type = IBV_SRQT_BASIC;
  extended.pd = pd;
  const int done = rdma_create_srq_ex(face, &extended);
  if (done == 0) std::memcpy(attr, &extended, sizeof *attr);
  return done;
}

void rdma_destroy_srq(rdma_cm_id* face) {
  if (face != nullptr && face->srq != nullptr) ibv_destroy_srq(std::exchange(face->srq, nullptr));
}

}  // extern "C"
