// Queue pairs: making and ending them.
#include "driver/verbs/number.hpp"
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

constexpr std::uint32_t kExtensions =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
constexpr std::uint64_t kWrites = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kKeyOperations = IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr std::uint64_t kReliable = kWrites | kSends | kKeyOperations | IBV_QP_EX_WITH_RDMA_READ |
                                    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                    IBV_QP_EX_WITH_SEND_WITH_INV;

Result<hw::QpType> type_of(const ibv_qp_type& type) {
  switch (number_of(type)) {
    case IBV_QPT_RC: return hw::QpType::kRc;
    case IBV_QPT_UC: return hw::QpType::kUc;
    case IBV_QPT_UD: return hw::QpType::kUd;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
    case IBV_QPT_DRIVER: return Error::kNotSupported;
  }
  return Error::kInvalidParameter;
}

/// The operations of a transport service (InfiniBand specification 9.4, table 37).
std::uint64_t operations_of(hw::QpType type) {
  switch (type) {
    case hw::QpType::kRc: return kReliable;
    case hw::QpType::kUc: return kWrites | kSends | kKeyOperations;
    case hw::QpType::kRawPacket:
    case hw::QpType::kUd: break;
  }
  return kSends;
}

ibv_qp* make_qp(ibv_pd* pd_face, ibv_qp_init_attr_ex& attributes) {
  const auto type = type_of(attributes.qp_type);
  if (!type) return refuse(type.error());
  if (attributes.send_cq == nullptr || attributes.recv_cq == nullptr) return refuse(EINVAL);
  const bool extended = (attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (extended && (attributes.send_ops_flags & ~operations_of(*type)) != 0) return refuse(EOPNOTSUPP);
  return or_null([&]() -> ibv_qp* {
    auto& context = Context::of(pd_face->context);
    auto& pd = Pd::of(pd_face);
    auto qp = std::make_unique<Qp>();
    qp->sink = std::make_shared<AsyncSink>(context.events, &qp->face);
    auto core = umd::QueuePair::create(
        context.process, {.send_cq = Cq::of(attributes.send_cq).core,
                          .receive_cq = Cq::of(attributes.recv_cq).core,
                          .pd = pd.handle(),
                          .shared_receives = attributes.srq != nullptr ? Srq::of(attributes.srq).core : nullptr,
                          .type = *type,
                          .capacity = {.send_depth = attributes.cap.max_send_wr,
                                       .receive_depth = attributes.srq != nullptr ? 0 : attributes.cap.max_recv_wr,
                                       .send_segments = attributes.cap.max_send_sge,
                                       .receive_segments = attributes.srq != nullptr ? 0 : attributes.cap.max_recv_sge,
                                       .inline_bytes = attributes.cap.max_inline_data},
                          .on_event = [sink = qp->sink](const hw::Eqe& eqe) { sink->on_event(eqe); }});
    if (!core) return refuse(core.error());
    qp->core = core.take();
    qp->type = *type;
    qp->signal_all = attributes.sq_sig_all != 0;
    qp->extended = extended;
    ibv_qp& face = qp->face.qp_base;
    face.context = pd_face->context;
    face.qp_context = attributes.qp_context;
    face.pd = pd_face;
    face.send_cq = attributes.send_cq;
    face.recv_cq = attributes.recv_cq;
    face.srq = attributes.srq;
    face.handle = qp->core->kernel_qp().handle();
    face.qp_num = qp->number = qp->core->qpn();
    face.state = IBV_QPS_RESET;
    face.qp_type = attributes.qp_type;
    begin_face(face);
    if (extended) {
      qp->send_operations = attributes.send_ops_flags;
      set_batch_operations(qp->face);
    }
    attributes.cap = capacity_of(*qp);
    ++pd.users;
    return &qp.release()->face.qp_base;
  });
}

}  // namespace

ibv_qp_cap capacity_of(const Qp& qp) {
  const umd::QueueCapacity& granted = qp.core->granted();
  const bool shared = qp.face.qp_base.srq != nullptr;
  return {.max_send_wr = granted.send_depth,
          .max_recv_wr = shared ? 0 : granted.receive_depth,
          .max_send_sge = granted.send_segments,
          .max_recv_sge = shared ? 0 : granted.receive_segments,
          .max_inline_data = granted.inline_bytes};
}

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attributes) {
  if ((attributes->comp_mask & ~kExtensions) != 0) return refuse(EOPNOTSUPP);
  if ((attributes->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attributes->pd == nullptr) return refuse(EINVAL);
  if ((attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attributes->create_flags != 0)
    return refuse(EOPNOTSUPP);
  return make_qp(attributes->pd, *attributes);
}

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

/// The plain attributes are the beginning of the extended ones.
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = attributes->qp_context;
  extended.send_cq = attributes->send_cq;
  extended.recv_cq = attributes->recv_cq;
  extended.srq = attributes->srq;
  extended.cap = attributes->cap;
  extended.qp_type = attributes->qp_type;
  extended.sq_sig_all = attributes->sq_sig_all;
  ibv_qp* const qp = make_qp(pd, extended);
  if (qp != nullptr) attributes->cap = extended.cap;
  return qp;
}

int ibv_destroy_qp(ibv_qp* face) {
  auto& qp = Qp::of(face);
  if (const int error = errno_of(qp.core->close_and_forget()); error != 0) return error;
  qp.sink->stop();
  wait_for_acknowledgements(face->mutex, face->cond, face->events_completed, qp.async_events);
  end_face(*face);
  --Pd::of(face->pd).users;
  delete &qp;
  return 0;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return Qp::of(qp).extended ? &Qp::of(qp).face : nullptr; }

}  // extern "C"
