#include "driver/kmd/kernel_qp.hpp"

#include <algorithm>

#include "driver/costs.hpp"
#include "driver/kmd/connection_service.hpp"
#include "driver/path_entropy.hpp"

namespace rnic::kmd {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr unsigned kTagTries = 8;

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kDevicePageBytes - 1) / kDevicePageBytes * kDevicePageBytes;
}

std::uint16_t source_port(const QpPath& path, std::uint32_t qpn, std::uint32_t dest_qpn) {
  if (path.udp_source_port != 0) return path.udp_source_port;
  return udp_source_port_for(path.flow_label != 0 ? path.flow_label : flow_label_for(qpn, dest_qpn));
}

bool in_range(unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; }

}  // namespace

Result<std::unique_ptr<KernelQp>> KernelDevice::create_qp(const QpSpec& spec) {
  return or_out_of_memory([&] { return make_qp(spec); });
}

Result<std::unique_ptr<KernelQp>> KernelDevice::make_qp(const QpSpec& spec) {
  if (!in_range(spec.sq_log_depth, hw::kMinLogQueueDepth, hw::kMaxLogQueueDepth) ||
      !in_range(spec.sq_log_stride, hw::kMinLogSendStride, hw::kMaxLogStride)) {
    return Error::kInvalidParameter;
  }
  if (!spec.srqn && (!in_range(spec.rq_log_depth, hw::kMinLogQueueDepth, hw::kMaxLogQueueDepth) ||
                     !in_range(spec.rq_log_stride, hw::kMinLogReceiveStride, hw::kMaxLogStride))) {
    return Error::kInvalidParameter;
  }
  // What UC drops gives its receives back, which a shared receive queue cannot take.
  if (spec.srqn && spec.type == hw::QpType::kUc) return Error::kNotSupported;
  // Frames of any content are the kernel's (host_interface.md, Ethernet).
  if (spec.type == hw::QpType::kRawPacket && (spec.uar != hw::kKernelUar || spec.srqn)) return Error::kInvalidParameter;
  if (spec.general_service && (spec.type != hw::QpType::kUd || spec.uar != hw::kKernelUar))
    return Error::kInvalidParameter;
  KernelQp::Memory layout;
  layout.send_bytes = std::size_t{1} << (spec.sq_log_depth + spec.sq_log_stride);
  layout.receive_offset = whole_pages(layout.send_bytes);
  if (!spec.srqn) layout.receive_bytes = std::size_t{1} << (spec.rq_log_depth + spec.rq_log_stride);
  layout.record_offset = layout.receive_offset + (layout.receive_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  layout.bytes = whole_pages(layout.record_offset + hw::RetiredRecord::kBytes);
  auto memory = DmaMemory::share(device_, layout.bytes, spec.account);
  if (!memory) return memory.error();
  layout.of = memory.take();
  Result<OwnedNumber> number = OwnedNumber{};
  if (!spec.general_service) number = draw_qpn();
  if (!number) return number.error();
  std::unique_ptr<KernelQp> qp(new KernelQp(*this, number.take(), spec, layout));
  hw::AdminCreateQp body;
  const std::uint64_t base = layout.of->iova();
  body.sq_base = base;
  if (!spec.srqn) body.rq_base = base + layout.receive_offset;
  body.retired_address = base + layout.record_offset;
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
  auto reply = execute(*qp->life_, hw::AdminOpcode::kCreateQp, qp->qpn(), body);
  if (!reply) return reply.error();
  qp->live_ = true;
  return qp;
}

Result<OwnedNumber> KernelDevice::draw_qpn() {
  std::vector<OwnedNumber> passed_over;  // so that another index is drawn
  for (;;) {
    auto number = OwnedNumber::acquire(*qps_);
    if (!number) return number;
    for (unsigned tries = 0; tries < kTagTries; ++tries, number->renew()) {
      const std::uint32_t qpn = number->number().over(hw::kQpIndexBits);
      if (qpn != kMulticastQpn && !connections_->remembers(qpn)) return number;
    }
    passed_over.push_back(number.take());
  }
}

std::uint32_t KernelQp::qpn_of(const OwnedNumber& number, const QpSpec& spec) {
  if (spec.general_service) return kGeneralServiceQpn;
  return number.number().over(hw::kQpIndexBits);
}

KernelQp::~KernelQp() {
  if (leave_groups() && destroy()) return;
  memory_.of->abandon();
  number_.abandon();
}

void KernelQp::merge(QpConnection& known, QpAttributes given, const QpConnection& attributes) {
  const auto has = [given](hw::QpAttr attr) { return (given & attribute(attr)) != 0; };
  const std::uint16_t pkey = known.path.pkey;
  if (has(hw::QpAttr::kAv)) known.path = attributes.path;
  known.path.pkey = has(hw::QpAttr::kPkeyIndex) ? attributes.path.pkey : pkey;
  if (has(hw::QpAttr::kQkey)) known.qkey = attributes.qkey;
  if (has(hw::QpAttr::kDestQpn)) known.dest_qpn = attributes.dest_qpn;
  if (has(hw::QpAttr::kSqPsn)) known.send_psn = attributes.send_psn;
  if (has(hw::QpAttr::kRqPsn)) known.receive_psn = attributes.receive_psn;
  if (has(hw::QpAttr::kPathMtu)) known.path_mtu = attributes.path_mtu;
  if (has(hw::QpAttr::kMaxDestRdAtomic)) known.inbound_reads = attributes.inbound_reads;
  if (has(hw::QpAttr::kMaxRdAtomic)) known.outbound_reads = attributes.outbound_reads;
  if (has(hw::QpAttr::kMinRnrTimer)) known.min_rnr_timer = attributes.min_rnr_timer;
  if (has(hw::QpAttr::kTimeout)) known.ack_timeout = attributes.ack_timeout;
  if (has(hw::QpAttr::kRetryCnt)) known.retry_count = attributes.retry_count;
  if (has(hw::QpAttr::kRnrRetry)) known.rnr_retry = attributes.rnr_retry;
  if (has(hw::QpAttr::kAccessFlags)) {
    known.remote_read = attributes.remote_read;
    known.remote_write = attributes.remote_write;
    known.remote_atomic = attributes.remote_atomic;
  }
  known.sqd_notify = has(hw::QpAttr::kSqdNotify) && attributes.sqd_notify;
  known.cur_state = attributes.cur_state;
}

Result<void> KernelQp::modify(hw::QpState next, QpAttributes given, const QpConnection& attributes) {
  const bool names_state = (given & attribute(hw::QpAttr::kCurState)) != 0;
  const auto transition = qp_transition(names_state ? attributes.cur_state : state_, next, type_);
  if (!transition.legal) return Error::kInvalidState;
  if (!transition.takes(given)) return Error::kInvalidParameter;
  QpConnection connection = connection_;
  merge(connection, given, attributes);
  const QpPath& path = connection.path;
  if ((connection.qkey & kPrivilegedQkey) != 0 && !privileged_) return Error::kInvalidParameter;
  // The management datagrams of QP1 are shorter than any MTU.
  if (qpn_ != kGeneralServiceQpn && (given & attribute(hw::QpAttr::kPathMtu)) != 0 &&
      connection.path_mtu > kernel_.limits().max_mtu)
    return Error::kInvalidParameter;
  hw::AdminModifyQp body;
  body.next_state = static_cast<std::uint8_t>(next);
  body.attr_mask = given;
  body.cur_state = static_cast<std::uint8_t>(connection.cur_state);
  body.sqd_notify = connection.sqd_notify;
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
  body.vlan = path.vlan != 0;
  body.vlan_id = path.vlan;
  body.pcp = path.pcp;
  body.udp_source_port = source_port(path, qpn_, connection.dest_qpn);
  body.flow_label = path.flow_label;
  body.qkey = connection.qkey;
  body.dest_mac = path.dest_mac;
  body.source_ip = path.source_ip;
  body.dest_ip = path.dest_ip;
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kModifyQp, qpn_, body);
  if (!reply) return reply.error();
  state_ = next;
  connection_ = connection;
  if (next == hw::QpState::kReset) {
    connection_ = {};
    *retired_record() = 0;
  }
  if (next == hw::QpState::kErr || next == hw::QpState::kReset) kernel_.reap_orphans();
  return {};
}

Result<QpCounters> KernelQp::counters(bool clear) {
  QpCounters all;
  constexpr std::size_t kHalf = hw::kQpCounters / 2;
  std::array<AdminQueue::Command, 2> commands;
  for (const std::size_t half : {0, 1}) {
    hw::AdminQueryQpCounters body;
    body.upper = half != 0;
    body.clear = clear;
    commands[half] = {.opcode = hw::AdminOpcode::kQueryQpCounters, .number = qpn_, .body = {}};
    body.encode(commands[half].body);
  }
  std::array<Result<AdminQueue::Reply>, 2> answers{Error::kDeviceFailed, Error::kDeviceFailed};
  kernel_.execute(*life_, commands, answers);
  for (const std::size_t half : {0, 1}) {
    const auto& reply = answers[half];
    if (!reply) return reply.error();
    for (std::size_t i = 0; i < kHalf; ++i) {
      for (std::size_t byte = 0; byte < 4; ++byte)
        all.counts[half * kHalf + i] |= std::uint32_t{(*reply)[4 * i + byte]} << 8 * byte;
    }
  }
  return all;
}

Result<hw::AdminQpState> KernelQp::query() {
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kQueryQp, qpn_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminQpState::decode(*reply);
}

Result<void> KernelQp::attach_multicast(const Gid& group) {
  if (type_ != hw::QpType::kUd || !is_multicast(group)) return Error::kInvalidParameter;
  // Room first: what the device has done must be known.
  if (auto room = or_out_of_memory([&]() -> Result<void> {
        groups_.reserve(groups_.size() + 1);
        if (account_ == nullptr || account_->join(group)) return {};
        const bool attached = std::find(groups_.begin(), groups_.end(), group) != groups_.end();
        return attached ? Error::kExists : Error::kOutOfResources;
      });
      !room)
    return room;
  hw::AdminMulticast body;
  body.mgid = group;
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kAttachMulticast, qpn_, body);
  if (!reply) {
    if (account_ != nullptr) account_->leave(group);
    return reply.error();
  }
  groups_.push_back(group);
  return {};
}

Result<void> KernelQp::detach_multicast(const Gid& group) {
  const auto found = std::find(groups_.begin(), groups_.end(), group);
  if (found == groups_.end()) return Error::kNotFound;
  hw::AdminMulticast body;
  body.mgid = group;
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kDetachMulticast, qpn_, body);
  if (!reply) return reply.error();
  if (account_ != nullptr) account_->leave(group);
  groups_.erase(found);
  return {};
}

Result<void> KernelQp::leave_groups() {
  while (!groups_.empty()) {
    const auto done = detach_multicast(Gid(groups_.back()));
    if (done) continue;
    if (kernel_.usable(*life_)) return done;
    // A device that has failed knows of none any more.
    for (; !groups_.empty(); groups_.pop_back()) {
      if (account_ != nullptr) account_->leave(groups_.back());
    }
  }
  return {};
}

Result<void> KernelQp::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(*life_, hw::AdminOpcode::kDestroyQp, qpn_); !done) return done;
  live_ = false;
  kernel_.reap_orphans();
  return {};
}

}  // namespace rnic::kmd
