#include "driver/umd/kernel_qp.hpp"

#include "driver/costs.hpp"

namespace rnic::umd {
namespace {

constexpr unsigned kFlushTries = 10'000;  // A flush takes some 10 cycles an entry

calls::QpAttributes attributes_of(const QpConnection& c) {
  return {.dest_gid = c.path.dest_gid,
          .dest_mac = c.path.dest_mac,
          .flow_label = c.path.flow_label,
          .dest_qpn = c.dest_qpn,
          .qkey = c.qkey,
          .send_psn = c.send_psn,
          .receive_psn = c.receive_psn,
          .pkey_index = c.path.pkey_index,
          .sgid_index = c.path.sgid_index,
          .second_sgid_index = c.path.second_sgid_index,
          .udp_source_port = c.path.udp_source_port,
          .traffic_class = c.path.traffic_class,
          .hop_limit = c.path.hop_limit,
          .sl = c.path.sl,
          .path_mtu = c.path_mtu,
          .inbound_reads = c.inbound_reads,
          .outbound_reads = c.outbound_reads,
          .min_rnr_timer = c.min_rnr_timer,
          .ack_timeout = c.ack_timeout,
          .retry_count = c.retry_count,
          .rnr_retry = c.rnr_retry,
          .remote_read = c.remote_read,
          .remote_write = c.remote_write,
          .remote_atomic = c.remote_atomic,
          .sqd_notify = c.sqd_notify,
          .cur_state = static_cast<std::uint8_t>(c.cur_state)};
}

}  // namespace

Result<void> KernelQp::begin(const calls::CreateQp& request, const calls::CreateQp::Answer& answer) {
  is(answer.qp);
  qpn_ = answer.qpn;
  type_ = static_cast<hw::QpType>(request.type);
  auto& port = context().port();
  auto send = port.map(answer.send_ring);
  if (!send) return send.error();
  send_ring_ = send.take();
  send_ring_bytes_ = answer.send_ring.bytes;
  if (request.srq == 0) {
    auto receive = port.map(answer.receive_ring);
    if (!receive) return receive.error();
    receive_ring_ = receive.take();
    receive_ring_bytes_ = answer.receive_ring.bytes;
  }
  auto record = port.map(answer.retired_record);
  if (!record) return record.error();
  retired_record_ = record.take();
  return {};
}

Result<void> KernelQp::modify(hw::QpState next, QpAttributes given, const QpConnection& attributes) {
  const auto done = context().call(calls::ModifyQp{.attributes = attributes_of(attributes),
                                                   .qp = handle(),
                                                   .mask = given,
                                                   .next_state = static_cast<std::uint8_t>(next)});
  return done ? Result<void>() : done.error();
}

Result<void> KernelQp::to_init(const QpConnection& connection) {
  return modify(hw::QpState::kInit, qp_transition(hw::QpState::kReset, hw::QpState::kInit, type_).required, connection);
}

Result<void> KernelQp::to_rtr(const QpConnection& connection) {
  const auto transition = qp_transition(hw::QpState::kInit, hw::QpState::kRtr, type_);
  return modify(hw::QpState::kRtr, transition.required | transition.optional, connection);
}

Result<void> KernelQp::to_rts(const QpConnection& connection) {
  return modify(hw::QpState::kRts, qp_transition(hw::QpState::kRtr, hw::QpState::kRts, type_).required, connection);
}

Result<void> KernelQp::to_sqd(bool notify) {
  QpConnection attributes;
  attributes.sqd_notify = notify;
  return modify(hw::QpState::kSqd, attribute(hw::QpAttr::kSqdNotify), attributes);
}

Result<void> KernelQp::resume() {
  // A reliable queue pair knows no SQE.
  if (type_ == hw::QpType::kRc) return modify(hw::QpState::kRts, 0, {});
  for (unsigned tries = 0; tries < kFlushTries; ++tries) {
    auto now = query();
    if (!now) return now.error();
    const bool stopped = now->state == static_cast<std::uint8_t>(hw::QpState::kSqe);
    if (!stopped || now->sq_retired == now->sq_producer) {
      auto done = modify(hw::QpState::kRts, 0, {});
      // The device looks again: more may have been posted since, and has to be flushed as well.
      if (done || !stopped || done.error() != Error::kInvalidState) return done;
    }
    context().machine().elapse(cost::kAdminPollNs);
  }
  return Error::kTimeout;
}

Result<void> KernelQp::to_error() { return modify(hw::QpState::kErr, 0, {}); }

Result<void> KernelQp::to_reset() { return modify(hw::QpState::kReset, 0, {}); }

Result<calls::QueryQp::Answer> KernelQp::query() { return context().call(calls::QueryQp{.qp = handle()}); }

Result<void> KernelQp::attach_multicast(const std::array<std::uint8_t, 16>& group) {
  const auto done = context().call(calls::AttachMulticast{.gid = group, .qp = handle()});
  return done ? Result<void>() : done.error();
}

Result<void> KernelQp::detach_multicast(const std::array<std::uint8_t, 16>& group) {
  const auto done = context().call(calls::DetachMulticast{.gid = group, .qp = handle()});
  return done ? Result<void>() : done.error();
}

Result<QpCounters> KernelQp::counters(bool clear) {
  const auto answer = context().call(calls::QueryQpCounters{.qp = handle(), .clear = clear});
  if (!answer) return answer.error();
  return QpCounters{answer->counts};
}

}  // namespace rnic::umd
