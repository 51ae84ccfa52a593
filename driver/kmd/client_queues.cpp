// The calls of a client about completion queues, shared receive queues and queue pairs.
#include "driver/kmd/client.hpp"

namespace rnic::kmd {

Result<void> Client::perform(const calls::CreateCq& m, calls::CreateCq::Answer& a) {
  if (!uar_) return Error::kInvalidState;
  auto place = handles_.reserve(calls::ObjectKind::kCq);
  if (!place) return place.error();
  auto channel = handles_.use(m.channel != 0 ? m.channel : first_channel_handle_, calls::ObjectKind::kChannel);
  if (!channel) return channel.error();
  auto cq = std::make_shared<ClientCq>(kernel_, this, as<ClientChannel>(*channel).channel, first_channel_);
  cq->channel = channel.take();
  auto made = kernel_.create_cq({.entries = m.entries, .uar = *uar_, .affinity = m.affinity, .account = account_});
  if (!made) return made.error();
  cq->object = made.take();
  const CqRing& ring = cq->object->ring();
  cq->ring = SharedRegion(regions_, ring.memory);
  cq->name(place->handle(), cq->object->cqn());
  kernel_.events().subscribe(EventTable::Of::kCq, cq->object->cqn(), cq);
  a.ring = cq->ring.range();
  a.cq = place->handle();
  a.cqn = cq->object->cqn();
  a.affinity = cq->object->affinity();
  a.log_depth = static_cast<std::uint8_t>(ring.log_depth);
  place->fill(std::move(cq));
  return {};
}

Result<void> Client::perform(const calls::ResizeCq& m, calls::ResizeCq::Answer& a) {
  return with<ClientCq>(m.cq, [&](ClientCq& cq) -> Result<void> {
    // Room first, for a ring that the device has taken must be known to the client.
    SharedRegion next(regions_, nullptr, 0);
    auto origin = cq.object->resize(m.entries);
    if (!origin) return origin.error();
    const CqRing& ring = *cq.object->next_ring();
    next.is_at(ring.memory);
    cq.next_ring = std::move(next);
    a.ring = cq.next_ring.range();
    a.origin = *origin;
    a.log_depth = static_cast<std::uint8_t>(ring.log_depth);
    return {};
  });
}

Result<void> Client::perform(const calls::AdoptCqRing& m, calls::AdoptCqRing::Answer&) {
  return with<ClientCq>(m.cq, [&](ClientCq& cq) -> Result<void> {
    if (!cq.object->next_ring()) return Error::kInvalidState;
    cq.object->adopt();
    cq.ring = std::exchange(cq.next_ring, {});
    return {};
  });
}

Result<void> Client::perform(const calls::ModifyCq& m, calls::ModifyCq::Answer&) {
  return with<ClientCq>(m.cq, [&](ClientCq& cq) { return cq.object->moderate(m.count, m.period_us); });
}

Result<void> Client::perform(const calls::QueryCq& m, calls::QueryCq::Answer& a) {
  return with<ClientCq>(m.cq, [&](ClientCq& cq) -> Result<void> {
    const auto state = cq.object->query();
    if (!state) return state.error();
    a.producer_index = state->producer_index;
    a.consumer_index = state->consumer_index;
    a.log_depth = state->log_depth;
    a.arm = state->arm;
    a.overrun = state->overrun;
    return {};
  });
}

Result<void> Client::perform(const calls::CreateSrq& m, calls::CreateSrq::Answer& a) {
  if (!uar_) return Error::kInvalidState;
  auto place = handles_.reserve(calls::ObjectKind::kSrq);
  if (!place) return place.error();
  auto pd = handles_.use(m.pd, calls::ObjectKind::kPd);
  if (!pd) return pd.error();
  auto srq = std::make_shared<ClientSrq>(kernel_, this, first_channel_);
  srq->pd = pd.take();
  auto made = kernel_.create_srq({.pd = pd_of(*srq),
                                  .uar = *uar_,
                                  .log_depth = m.log_depth,
                                  .log_stride = m.log_stride,
                                  .affinity = m.affinity,
                                  .account = account_});
  if (!made) return made.error();
  srq->object = made.take();
  a.affinity = srq->object->affinity();
  srq->ring = SharedRegion(regions_, srq->object->ring());
  srq->name(place->handle(), srq->object->srqn());
  kernel_.events().subscribe(EventTable::Of::kSrq, srq->object->srqn(), srq);
  a.ring = srq->ring.range();
  a.srq = place->handle();
  a.srqn = srq->object->srqn();
  place->fill(std::move(srq));
  return {};
}

Result<void> Client::perform(const calls::ArmSrq& m, calls::ArmSrq::Answer&) {
  return with<ClientSrq>(m.srq, [&](ClientSrq& srq) { return srq.object->arm(m.limit); });
}

Result<void> Client::perform(const calls::PrepareSrqRing& m, calls::PrepareSrqRing::Answer& a) {
  return with<ClientSrq>(m.srq, [&](ClientSrq& srq) -> Result<void> {
    // Rings only grow, so all earlier ones together are smaller than the present one.
    if (m.log_depth <= srq.object->log_depth() || 1U << m.log_depth > kernel_.limits().max_srq_depth)
      return Error::kInvalidParameter;
    auto memory =
        DmaMemory::share(kernel_.device(), std::size_t{1} << (m.log_depth + srq.object->log_stride()), account_);
    if (!memory) return memory.error();
    SharedRegion region(regions_, *memory);
    srq.prepared_ring = std::move(region);
    srq.prepared = memory.take();
    srq.prepared_log_depth = m.log_depth;
    a.ring = srq.prepared_ring.range();
    return {};
  });
}

Result<void> Client::perform(const calls::UseSrqRing& m, calls::UseSrqRing::Answer&) {
  return with<ClientSrq>(m.srq, [&](ClientSrq& srq) -> Result<void> {
    if (srq.prepared_log_depth == 0) return Error::kInvalidState;
    if (auto moved = srq.object->move_to(srq.prepared, srq.prepared_log_depth); !moved) return moved;
    srq.ring = std::exchange(srq.prepared_ring, {});
    srq.prepared.reset();
    srq.prepared_log_depth = 0;
    return {};
  });
}

Result<void> Client::perform(const calls::QuerySrq& m, calls::QuerySrq::Answer& a) {
  return with<ClientSrq>(m.srq, [&](ClientSrq& srq) -> Result<void> {
    const auto state = srq.object->query();
    if (!state) return state.error();
    a.producer_index = state->producer_index;
    a.head = state->head;
    a.limit = state->limit;
    a.log_depth = state->log_depth;
    a.error = state->error;
    return {};
  });
}

Result<void> Client::perform(const calls::CreateQp& m, calls::CreateQp::Answer& a) {
  if (!uar_) return Error::kInvalidState;
  if ((m.fast_register != 0 || m.general_service != 0) && !trusted_) return Error::kNotSupported;
  auto place = handles_.reserve(calls::ObjectKind::kQp);
  if (!place) return place.error();
  auto pd = handles_.use(m.pd, calls::ObjectKind::kPd);
  if (!pd) return pd.error();
  auto send_cq = handles_.use(m.send_cq, calls::ObjectKind::kCq);
  if (!send_cq) return send_cq.error();
  auto receive_cq = handles_.use(m.receive_cq, calls::ObjectKind::kCq);
  if (!receive_cq) return receive_cq.error();
  Result<HandleTable::Use> srq = HandleTable::Use();
  if (m.srq != 0) srq = handles_.use(m.srq, calls::ObjectKind::kSrq);
  if (!srq) return srq.error();
  auto qp = std::make_shared<ClientQp>(kernel_, this, first_channel_);
  qp->pd = pd.take();
  qp->send_cq = send_cq.take();
  qp->receive_cq = receive_cq.take();
  qp->srq = srq.take();
  QpSpec spec;
  spec.pd = pd_of(*qp);
  spec.uar = *uar_;
  spec.send_cqn = as<ClientCq>(qp->send_cq).object->cqn();
  spec.receive_cqn = as<ClientCq>(qp->receive_cq).object->cqn();
  spec.sq_log_depth = m.sq_log_depth;
  spec.sq_log_stride = m.sq_log_stride;
  spec.rq_log_depth = m.rq_log_depth;
  spec.rq_log_stride = m.rq_log_stride;
  if (m.srq != 0) spec.srqn = as<ClientSrq>(qp->srq).object->srqn();
  spec.fast_register = m.fast_register != 0;
  spec.type = static_cast<hw::QpType>(m.type);
  spec.general_service = m.general_service != 0;
  spec.privileged = trusted_;
  spec.account = account_;
  auto made = kernel_.create_qp(spec);
  if (!made) return made.error();
  qp->object = made.take();
  const KernelQp::Memory& memory = qp->object->memory();
  qp->memory = SharedRegion(regions_, memory.of);
  qp->name(place->handle(), qp->object->qpn());
  kernel_.events().subscribe(EventTable::Of::kQp, qp->object->qpn(), qp);
  a.send_ring = qp->memory.range(0, memory.send_bytes);
  if (memory.receive_bytes != 0) a.receive_ring = qp->memory.range(memory.receive_offset, memory.receive_bytes);
  a.retired_record = qp->memory.range(memory.record_offset, hw::RetiredRecord::kBytes);
  a.qp = place->handle();
  a.qpn = qp->object->qpn();
  place->fill(std::move(qp));
  return {};
}

/// The attributes as the device takes them. What belongs to the port comes from its tables.
Result<QpConnection> Client::connection_of(const calls::ModifyQp& m, hw::QpType type) {
  const calls::QpAttributes& given = m.attributes;
  const auto has = [&](hw::QpAttr attr) { return (m.mask & attribute(attr)) != 0; };
  QpConnection connection;
  QpPath& path = connection.path;
  if (has(hw::QpAttr::kAv)) {
    const auto own = kernel_.port_tables().own_address(given.sgid_index);
    if (!own) return Error::kInvalidParameter;
    path.source_ip = own->gid;
    path.ipv6 = !is_ipv4_mapped(path.source_ip);
    if (type == hw::QpType::kUd) {
      auto second = kernel_.port_tables().gid(given.second_sgid_index);
      if (!second) return Error::kInvalidParameter;
      path.dest_ip = second.take();
    } else {
      if (is_ipv4_mapped(given.dest_gid) == path.ipv6) return Error::kInvalidParameter;
      path.dest_ip = given.dest_gid;
      path.vlan = own->vlan;
      path.pcp = given.sl;
    }
  }
  if (has(hw::QpAttr::kPkeyIndex)) {
    auto pkey = kernel_.port_tables().pkey(given.pkey_index);
    if (!pkey) return Error::kInvalidParameter;
    path.pkey = *pkey;
  }
  if (has(hw::QpAttr::kQkey) && (given.qkey & kPrivilegedQkey) != 0 && !trusted_) return Error::kInvalidParameter;
  path.dest_mac = given.dest_mac;
  path.traffic_class = given.traffic_class;
  path.hop_limit = given.hop_limit;
  path.udp_source_port = given.udp_source_port;
  path.flow_label = given.flow_label;
  connection.dest_qpn = given.dest_qpn;
  connection.qkey = given.qkey;
  connection.send_psn = given.send_psn;
  connection.receive_psn = given.receive_psn;
  connection.path_mtu = given.path_mtu;
  connection.inbound_reads = given.inbound_reads;
  connection.outbound_reads = given.outbound_reads;
  connection.min_rnr_timer = given.min_rnr_timer;
  connection.ack_timeout = given.ack_timeout;
  connection.retry_count = given.retry_count;
  connection.rnr_retry = given.rnr_retry;
  connection.remote_read = given.remote_read != 0;
  connection.remote_write = given.remote_write != 0;
  connection.remote_atomic = given.remote_atomic != 0;
  connection.sqd_notify = given.sqd_notify != 0;
  connection.cur_state = static_cast<hw::QpState>(given.cur_state);
  return connection;
}

Result<void> Client::perform(const calls::ModifyQp& m, calls::ModifyQp::Answer&) {
  return with<ClientQp>(m.qp, [&](ClientQp& qp) -> Result<void> {
    const auto connection = connection_of(m, qp.object->type());
    if (!connection) return connection.error();
    const auto next = static_cast<hw::QpState>(m.next_state);
    if (auto done = qp.object->modify(next, m.mask, *connection); !done) return done;
    if (next == hw::QpState::kReset) qp.pkey_index = qp.sgid_index = qp.second_sgid_index = 0;
    if ((m.mask & attribute(hw::QpAttr::kPkeyIndex)) != 0) qp.pkey_index = m.attributes.pkey_index;
    if ((m.mask & attribute(hw::QpAttr::kAv)) != 0) {
      qp.sgid_index = m.attributes.sgid_index;
      qp.second_sgid_index = m.attributes.second_sgid_index;
    }
    return {};
  });
}

Result<void> Client::perform(const calls::QueryQp& m, calls::QueryQp::Answer& a) {
  return with<ClientQp>(m.qp, [&](ClientQp& qp) -> Result<void> {
    const auto state = qp.object->query();
    if (!state) return state.error();
    const QpConnection& known = qp.object->connection();
    calls::QpAttributes& of = a.attributes;
    if (qp.object->type() != hw::QpType::kUd) of.dest_gid = known.path.dest_ip;
    of.dest_mac = known.path.dest_mac;
    of.flow_label = known.path.flow_label;
    of.dest_qpn = known.dest_qpn;
    of.qkey = known.qkey;
    of.send_psn = known.send_psn;
    of.receive_psn = known.receive_psn;
    of.pkey_index = qp.pkey_index;
    of.sgid_index = qp.sgid_index;
    of.second_sgid_index = qp.second_sgid_index;
    of.udp_source_port = known.path.udp_source_port;
    of.traffic_class = known.path.traffic_class;
    of.hop_limit = known.path.hop_limit;
    of.sl = known.path.pcp;
    of.path_mtu = known.path_mtu;
    of.inbound_reads = known.inbound_reads;
    of.outbound_reads = known.outbound_reads;
    of.min_rnr_timer = known.min_rnr_timer;
    of.ack_timeout = known.ack_timeout;
    of.retry_count = known.retry_count;
    of.rnr_retry = known.rnr_retry;
    of.remote_read = known.remote_read;
    of.remote_write = known.remote_write;
    of.remote_atomic = known.remote_atomic;
    of.cur_state = state->state;
    a.sq_psn = state->sq_psn;
    a.una_psn = state->una_psn;
    a.rq_psn = state->rq_psn;
    a.sq_producer = state->sq_producer;
    a.sq_executed = state->sq_executed;
    a.sq_retired = state->sq_retired;
    a.rq_producer = state->rq_producer;
    a.rq_head = state->rq_head;
    a.state = state->state;
    a.outstanding_reads = state->outstanding_reads;
    a.sq_draining = state->sq_draining;
    return {};
  });
}

std::vector<Client::QpFigures> Client::queue_pairs() {
  std::vector<QpFigures> all;
  const UnderWay under_way(*this);
  for (const calls::Handle handle : closed_ ? std::vector<calls::Handle>() : handles_.handles(ClientQp::kKind)) {
    static_cast<void>(with<ClientQp>(handle, [&](ClientQp& qp) -> Result<void> {
                        const auto state = qp.object->query();
                        if (!state) return state.error();
                        const auto counters = qp.object->counters();
                        if (!counters) return counters.error();
                        all.push_back({.qpn = qp.object->qpn(),
                                       .type = qp.object->type(),
                                       .state = static_cast<hw::QpState>(state->state),
                                       .counters = *counters});
                        return {};
                      }).ok());
  }
  return all;
}

Result<void> Client::perform(const calls::QueryQpCounters& m, calls::QueryQpCounters::Answer& a) {
  return with<ClientQp>(m.qp, [&](ClientQp& qp) -> Result<void> {
    const auto counters = qp.object->counters(m.clear != 0);
    if (!counters) return counters.error();
    static_assert(std::tuple_size_v<decltype(a.counts)> == hw::kQpCounters);
    a.counts = counters->counts;
    return {};
  });
}

Result<void> Client::perform(const calls::AttachMulticast& m, calls::AttachMulticast::Answer&) {
  return with<ClientQp>(m.qp, [&](ClientQp& qp) { return qp.object->attach_multicast(m.gid); });
}

Result<void> Client::perform(const calls::DetachMulticast& m, calls::DetachMulticast::Answer&) {
  return with<ClientQp>(m.qp, [&](ClientQp& qp) { return qp.object->detach_multicast(m.gid); });
}

}  // namespace rnic::kmd
