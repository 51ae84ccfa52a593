#include "driver/kmd/kernel_qp.hpp"

#include "driver/kmd/path_entropy.hpp"

namespace rnic::kmd {
namespace {

constexpr std::uint32_t kIndexMask = (1U << hw::kQpIndexBits) - 1;

bool is_pooled(std::uint32_t qpn) { return qpn != kGeneralServiceQpn; }

std::uint16_t source_port(const QpPath& path, std::uint32_t qpn, std::uint32_t dest_qpn) {
  if (path.udp_source_port != 0) return path.udp_source_port;
  return udp_source_port_for(path.flow_label != 0 ? path.flow_label : flow_label_for(qpn, dest_qpn));
}

bool in_range(unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; }

}  // namespace

Result<std::unique_ptr<KernelQp>> KernelDevice::create_qp(const QpSpec& spec) {
  if (admin_.failed()) return Error::kDeviceFailed;
  if (!in_range(spec.sq_log_depth, hw::kMinLogQueueDepth, hw::kMaxLogQueueDepth) ||
      !in_range(spec.sq_log_stride, hw::kMinLogSendStride, hw::kMaxLogStride)) {
    return Error::kInvalidParameter;
  }
  if (!spec.srqn && (!in_range(spec.rq_log_depth, hw::kMinLogQueueDepth, hw::kMaxLogQueueDepth) ||
                     !in_range(spec.rq_log_stride, hw::kMinLogReceiveStride, hw::kMaxLogStride))) {
    return Error::kInvalidParameter;
  }
  if (spec.general_service && (spec.type != hw::QpType::kUd || spec.uar != hw::kKernelUar)) return Error::kInvalidParameter;
  auto send_ring = DmaMemory::allocate(device_, 1ULL << (spec.sq_log_depth + spec.sq_log_stride));
  if (!send_ring) return send_ring.error();
  Result<DmaMemory> receive_ring = DmaMemory{};
  if (!spec.srqn) receive_ring = DmaMemory::allocate(device_, 1ULL << (spec.rq_log_depth + spec.rq_log_stride));
  if (!receive_ring) return receive_ring.error();
  auto retired = pool_.allocate(hw::RetiredRecord::kBytes);
  if (!retired) return retired.error();
  std::uint32_t qpn = kGeneralServiceQpn;
  if (!spec.general_service) {
    auto number = qps_->acquire();
    if (!number) {
      pool_.free(*retired);
      return number.error();
    }
    qpn = (number->tag << hw::kQpIndexBits) | number->index;
  }
  hw::AdminCreateQp body;
  body.sq_base = send_ring->iova();
  body.rq_base = receive_ring->iova();
  body.retired_address = retired->iova;
  body.pd = spec.pd;
  body.uar = static_cast<std::uint8_t>(spec.uar);
  body.send_cqn = spec.send_cqn;
  body.receive_cqn = spec.receive_cqn;
  body.sq_log_depth = static_cast<std::uint8_t>(spec.sq_log_depth);
  body.sq_log_stride = static_cast<std::uint8_t>(spec.sq_log_stride);
  body.rq_log_depth = static_cast<std::uint8_t>(spec.rq_log_depth);
  body.rq_log_stride = static_cast<std::uint8_t>(spec.rq_log_stride);
  if (spec.srqn) {
    body.use_srq = 1;
    body.srqn = *spec.srqn;
  }
  body.fast_register = spec.fast_register;
  body.qp_type = static_cast<std::uint8_t>(spec.type);
  auto reply = admin_.execute(hw::AdminOpcode::kCreateQp, qpn, body);
  if (!reply) {
    if (is_pooled(qpn)) qps_->release(qpn & kIndexMask);
    if (admin_.failed()) {
      send_ring->abandon();
      receive_ring->abandon();
    } else {
      pool_.free(*retired);
    }
    return reply.error();
  }
  return std::unique_ptr<KernelQp>(
      new KernelQp(*this, qpn, spec.uar == hw::kKernelUar, send_ring.take(), receive_ring.take(), *retired));
}

KernelQp::~KernelQp() {
  if (live_ && !destroy()) {
    send_ring_.abandon();
    receive_ring_.abandon();
  }
}

Result<void> KernelQp::modify(hw::QpState next, const QpConnection& connection) {
  const QpPath& path = connection.path;
  if ((connection.qkey & kPrivilegedQkey) != 0 && !privileged_) return Error::kInvalidParameter;
  hw::AdminModifyQp body;
  body.next_state = static_cast<std::uint8_t>(next);
  body.path_mtu = connection.path_mtu;
  body.max_dest_rd_atomic = connection.inbound_reads;
  body.max_rd_atomic = connection.outbound_reads;
  body.min_rnr_timer = connection.min_rnr_timer;
  body.ack_timeout = connection.ack_timeout;
  body.retry_count = connection.retry_count;
  body.rnr_retry = connection.rnr_retry;
  body.remote_write = connection.remote_write;
  body.remote_read = connection.remote_read;
  body.remote_atomic = connection.remote_atomic;
  body.ipv6 = path.ipv6;
  body.rq_psn = connection.receive_psn;
  body.dest_qpn = connection.dest_qpn;
  body.pkey = path.pkey;
  body.sq_psn = connection.send_psn;
  body.traffic_class = path.traffic_class;
  body.hop_limit = path.hop_limit;
  body.udp_source_port = source_port(path, qpn_, connection.dest_qpn);
  body.flow_label = path.flow_label;
  body.qkey = connection.qkey;
  body.dest_mac = path.dest_mac;
  body.source_ip = path.source_ip;
  body.dest_ip = path.dest_ip;
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kModifyQp, qpn_, body);
  if (!reply) return reply.error();
  return {};
}

Result<void> KernelQp::to_init(const QpConnection& connection) {
  return modify(hw::QpState::kInit, connection);
}
Result<void> KernelQp::to_rtr(const QpConnection& connection) {
  return modify(hw::QpState::kRtr, connection);
}
Result<void> KernelQp::to_rts(const QpConnection& connection) {
  return modify(hw::QpState::kRts, connection);
}
Result<void> KernelQp::to_error() { return modify(hw::QpState::kErr, {}); }

Result<void> KernelQp::to_reset() {
  if (auto done = modify(hw::QpState::kReset, {}); !done) return done;
  *retired_record() = 0;
  return {};
}

Result<hw::AdminQpState> KernelQp::query() {
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kQueryQp, qpn_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminQpState::decode(*reply);
}

Result<void> KernelQp::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(hw::AdminOpcode::kDestroyQp, qpn_); !done) return done;
  live_ = false;
  kernel_.pool_.free(retired_);
  if (is_pooled(qpn_)) kernel_.qps_->release(qpn_ & kIndexMask);
  return {};
}

}  // namespace rnic::kmd
