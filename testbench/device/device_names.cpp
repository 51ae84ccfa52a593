#include "testbench/device/device_names.hpp"

#include <fcntl.h>

namespace rnic::testbench {

ibv_qp_state verbs_state(hw::QpState state) {
  switch (state) {
    case hw::QpState::kReset: return IBV_QPS_RESET;
    case hw::QpState::kInit: return IBV_QPS_INIT;
    case hw::QpState::kRtr: return IBV_QPS_RTR;
    case hw::QpState::kRts: return IBV_QPS_RTS;
    case hw::QpState::kSqd: return IBV_QPS_SQD;
    case hw::QpState::kSqe: return IBV_QPS_SQE;
    case hw::QpState::kErr: return IBV_QPS_ERR;
  }
  return IBV_QPS_UNKNOWN;
}

std::string verbs_state_name(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET: return "RESET";
    case IBV_QPS_INIT: return "INIT";
    case IBV_QPS_RTR: return "RTR";
    case IBV_QPS_RTS: return "RTS";
    case IBV_QPS_SQD: return "SQD";
    case IBV_QPS_SQE: return "SQE";
    case IBV_QPS_ERR: return "ERR";
    case IBV_QPS_UNKNOWN: break;
  }
  return "unknown";
}

ibv_qp_attr verbs_attributes(const VerbsLibrary& verbs, ibv_qp* qp) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  if (verbs.query_qp(qp, &attributes, IBV_QP_STATE, &init) != 0) attributes.qp_state = IBV_QPS_UNKNOWN;
  return attributes;
}

ibv_wc_opcode verbs_opcode(umd::RequestKind kind) {
  switch (kind) {
    case umd::RequestKind::kSend: return IBV_WC_SEND;
    case umd::RequestKind::kWrite: return IBV_WC_RDMA_WRITE;
    case umd::RequestKind::kRead:
    case umd::RequestKind::kReadInvalidate: return IBV_WC_RDMA_READ;
    case umd::RequestKind::kCompareSwap: return IBV_WC_COMP_SWAP;
    case umd::RequestKind::kFetchAdd: return IBV_WC_FETCH_ADD;
    case umd::RequestKind::kReceive: return IBV_WC_RECV;
    case umd::RequestKind::kReceiveWrite: return IBV_WC_RECV_RDMA_WITH_IMM;
    case umd::RequestKind::kBind: return IBV_WC_BIND_MW;
    case umd::RequestKind::kInvalidate:
    case umd::RequestKind::kFastRegister: break;  // the latter is the kernel's alone
  }
  return IBV_WC_LOCAL_INV;
}

ibv_event_type verbs_event(hw::EqeType type) {
  switch (type) {
    case hw::EqeType::kCqError: return IBV_EVENT_CQ_ERR;
    case hw::EqeType::kQpFatal: return IBV_EVENT_QP_FATAL;
    case hw::EqeType::kQpRequestError: return IBV_EVENT_QP_REQ_ERR;
    case hw::EqeType::kQpAccessError: return IBV_EVENT_QP_ACCESS_ERR;
    case hw::EqeType::kCommEstablished: return IBV_EVENT_COMM_EST;
    case hw::EqeType::kSqDrained: return IBV_EVENT_SQ_DRAINED;
    case hw::EqeType::kPortActive: return IBV_EVENT_PORT_ACTIVE;
    case hw::EqeType::kPortError: return IBV_EVENT_PORT_ERR;
    case hw::EqeType::kSrqError: return IBV_EVENT_SRQ_ERR;
    case hw::EqeType::kSrqLimit: return IBV_EVENT_SRQ_LIMIT_REACHED;
    case hw::EqeType::kLastWqeReached: return IBV_EVENT_QP_LAST_WQE_REACHED;
    case hw::EqeType::kCompletion:
    case hw::EqeType::kDeviceFatal: break;
  }
  return IBV_EVENT_DEVICE_FATAL;
}

bool set_nonblocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace rnic::testbench
