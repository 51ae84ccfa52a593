// Queue pairs: their states and attributes.
#include <algorithm>
#include <array>
#include <cstring>

#include "driver/verbs/hint.hpp"
#include "driver/verbs/number.hpp"
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

constexpr std::uint8_t kUsualHopLimit = 64;
// Alternate paths, path migration, other capacities and rate limits are not there.
constexpr unsigned kAttributes = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS |
                                 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU |
                                 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN;
// The bits that the device has are those of the verbs.
static_assert(attribute(hw::QpAttr::kState) == IBV_QP_STATE && attribute(hw::QpAttr::kDestQpn) == IBV_QP_DEST_QPN &&
              attribute(hw::QpAttr::kAv) == IBV_QP_AV && attribute(hw::QpAttr::kSqPsn) == IBV_QP_SQ_PSN);
static_assert(static_cast<int>(hw::QpState::kErr) == IBV_QPS_ERR && static_cast<int>(hw::QpState::kSqe) == IBV_QPS_SQE);

bool is_state(const ibv_qp_state& state) {
  const int number = number_of(state);
  return number >= IBV_QPS_RESET && number <= IBV_QPS_ERR;
}

/// An errno.
int check_values(const ibv_qp_attr& a, unsigned mask) {
  constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_RELAXED_ORDERING;
  const auto has = [mask](unsigned attr) { return (mask & attr) != 0; };
  if ((mask & ~kAttributes) != 0) return EINVAL;
  if (has(IBV_QP_STATE) && !is_state(a.qp_state)) return EINVAL;
  if (has(IBV_QP_CUR_STATE) && !is_state(a.cur_qp_state)) return EINVAL;
  if (has(IBV_QP_PATH_MTU) && (number_of(a.path_mtu) < IBV_MTU_256 || number_of(a.path_mtu) > IBV_MTU_4096))
    return EINVAL;
  if (has(IBV_QP_PORT) && a.port_num != kPort) return EINVAL;
  if (has(IBV_QP_ACCESS_FLAGS) && (a.qp_access_flags & ~kRights) != 0) return EINVAL;
  if (has(IBV_QP_AV) && a.ah_attr.port_num != kPort) return EINVAL;
  // RoCE addresses are always global (annex A17.4.1).
  if (has(IBV_QP_AV) && a.ah_attr.is_global == 0) {
    hint_at_grh();
    return EINVAL;
  }
  return 0;
}

/// The path of an address vector. Errors: those of station_of.
Result<umd::QpPath> path_of(Context& context, const ibv_ah_attr& ah) {
  umd::QpPath path;
  const auto station = station_of(context, ah.grh.dgid);
  if (!station) return station.error();
  path.sgid_index = ah.grh.sgid_index;
  std::memcpy(path.dest_gid.data(), ah.grh.dgid.raw, sizeof ah.grh.dgid.raw);
  path.dest_mac = *station;
  path.traffic_class = ah.grh.traffic_class;
  path.hop_limit = ah.grh.hop_limit != 0 ? ah.grh.hop_limit : kUsualHopLimit;
  path.flow_label = ah.grh.flow_label;
  path.sl = priority_of(ah.sl);
  return path;
}

umd::QpConnection connection_of(const ibv_qp_attr& a, unsigned mask) {
  umd::QpConnection c;
  c.path.pkey_index = a.pkey_index;
  // Numbers that the program does not give are not looked at, and must be in their ranges all the same.
  const auto given = [mask](unsigned attr, auto value) { return (mask & attr) != 0 ? value : decltype(value){}; };
  c.dest_qpn = given(IBV_QP_DEST_QPN, a.dest_qp_num);
  c.qkey = given(IBV_QP_QKEY, a.qkey);
  c.send_psn = given(IBV_QP_SQ_PSN, a.sq_psn) & 0xFFFFFF;
  c.receive_psn = given(IBV_QP_RQ_PSN, a.rq_psn) & 0xFFFFFF;
  c.path_mtu = static_cast<std::uint8_t>(given(IBV_QP_PATH_MTU, number_of(a.path_mtu)));
  c.inbound_reads = given(IBV_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic);
  c.outbound_reads = given(IBV_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic);
  c.min_rnr_timer = given(IBV_QP_MIN_RNR_TIMER, a.min_rnr_timer);
  c.ack_timeout = given(IBV_QP_TIMEOUT, a.timeout);
  c.retry_count = given(IBV_QP_RETRY_CNT, a.retry_cnt);
  c.rnr_retry = given(IBV_QP_RNR_RETRY, a.rnr_retry);
  c.remote_read = (a.qp_access_flags & IBV_ACCESS_REMOTE_READ) != 0;
  c.remote_write = (a.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0;
  c.remote_atomic = (a.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) != 0;
  c.sqd_notify = a.en_sqd_async_notify != 0;
  c.cur_state = static_cast<hw::QpState>(given(IBV_QP_CUR_STATE, number_of(a.cur_qp_state)));
  return c;
}

/// What a UD queue pair of the device has and one of the verbs has not: its own addresses, and the MTU of its port.
void add_own_addresses(const Context& context, umd::QpConnection& connection, unsigned& mask) {
  mask |= IBV_QP_AV | IBV_QP_PATH_MTU;
  connection.path.sgid_index = 0;
  connection.path.second_sgid_index = context.second_sgid;
  connection.path_mtu = static_cast<std::uint8_t>(context.process->limits().max_mtu);
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;
namespace hw = rnic::hw;

extern "C" {

int ibv_modify_qp(ibv_qp* face, ibv_qp_attr* attributes, int attribute_mask) {
  auto mask = static_cast<unsigned>(attribute_mask);
  if (const int error = check_values(*attributes, mask); error != 0) return error;
  auto& qp = Qp::of(face);
  auto& context = Context::of(face->context);
  const bool ud = qp.type == hw::QpType::kUd;
  if (ud && (mask & (IBV_QP_AV | IBV_QP_PATH_MTU)) != 0) return EINVAL;
  auto next = static_cast<hw::QpState>(number_of(attributes->qp_state));
  if ((mask & IBV_QP_STATE) == 0) {
    const auto now = qp.core->kernel_qp().query();
    if (!now) return errno_of(now.error());
    next = static_cast<hw::QpState>(now->state);
  }
  auto connection = connection_of(*attributes, mask);
  if ((mask & IBV_QP_AV) != 0) {
    auto path = path_of(context, attributes->ah_attr);
    if (!path) return path.error() == rnic::Error::kNotFound ? EHOSTUNREACH : errno_of(path.error());
    path->pkey_index = connection.path.pkey_index;
    connection.path = *path;
  }
  if (ud && next == hw::QpState::kRtr) add_own_addresses(context, connection, mask);
  if (const int error = errno_of(qp.core->modify(next, mask, connection)); error != 0) return error;
  if (next == hw::QpState::kReset) {
    // As of a queue pair that is new, nothing of it is there (InfiniBand specification 10.3.1.1).
    for (ibv_cq* const cq : {face->send_cq, face->recv_cq}) Cq::of(cq).core->forget(face->qp_num);
  }
  face->state = static_cast<ibv_qp_state>(next);
  return 0;
}

/// Everything, whatever the mask names: the device is asked once.
int ibv_query_qp(ibv_qp* face, ibv_qp_attr* attributes, int, ibv_qp_init_attr* initial) {
  auto& qp = Qp::of(face);
  const auto is = qp.core->kernel_qp().query();
  if (!is) return errno_of(is.error());
  const rnic::calls::QpAttributes& of = is->attributes;
  ibv_qp_attr a{};
  a.qp_state = static_cast<ibv_qp_state>(is->state);
  a.cur_qp_state = a.qp_state;
  a.path_mtu = static_cast<ibv_mtu>(of.path_mtu);
  a.path_mig_state = IBV_MIG_MIGRATED;
  a.qkey = of.qkey;
  a.rq_psn = is->rq_psn;
  a.sq_psn = is->sq_psn;
  a.dest_qp_num = of.dest_qpn;
  a.qp_access_flags = flag_if(of.remote_read != 0, IBV_ACCESS_REMOTE_READ) |
                      flag_if(of.remote_write != 0, IBV_ACCESS_REMOTE_WRITE) |
                      flag_if(of.remote_atomic != 0, IBV_ACCESS_REMOTE_ATOMIC);
  a.cap = capacity_of(qp);
  if (qp.type != hw::QpType::kUd) {
    std::memcpy(a.ah_attr.grh.dgid.raw, of.dest_gid.data(), sizeof a.ah_attr.grh.dgid.raw);
    a.ah_attr.grh.flow_label = of.flow_label;
    a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(of.sgid_index);
    a.ah_attr.grh.hop_limit = of.hop_limit;
    a.ah_attr.grh.traffic_class = of.traffic_class;
    a.ah_attr.is_global = 1;
    a.ah_attr.sl = of.sl;
    a.ah_attr.port_num = kPort;
  }
  a.pkey_index = of.pkey_index;
  a.sq_draining = is->sq_draining;
  a.max_rd_atomic = of.outbound_reads;
  a.max_dest_rd_atomic = of.inbound_reads;
  a.min_rnr_timer = of.min_rnr_timer;
  a.port_num = kPort;
  a.timeout = of.ack_timeout;
  a.retry_cnt = of.retry_count;
  a.rnr_retry = of.rnr_retry;
  *attributes = a;
  face->state = a.qp_state;
  *initial = {.qp_context = face->qp_context,
              .send_cq = face->send_cq,
              .recv_cq = face->recv_cq,
              .srq = face->srq,
              .cap = a.cap,
              .qp_type = face->qp_type,
              .sq_sig_all = qp.signal_all ? 1 : 0};
  return 0;
}

/// Writes become visible in the order of their packets, but nothing is promised of the bytes of one.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return EOPNOTSUPP;
}

int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return EOPNOTSUPP;
}

}  // extern "C"
