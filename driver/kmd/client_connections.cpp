// The calls of a client about connections.
#include <bit>

#include "driver/kmd/client.hpp"

namespace rnic::kmd {
namespace {

static_assert(static_cast<int>(calls::ConnectionEvent::kGroupJoined) == static_cast<int>(cm::EventType::kGroupJoined));

// Of the event GroupJoined: the group, then the place of the own address.
constexpr std::size_t kGroupIndexAt = 16, kGroupBytes = 18;

/// ibv_mtu of a path MTU in bytes.
std::uint8_t mtu_code(std::uint32_t bytes) { return static_cast<std::uint8_t>(std::bit_width(bytes) - 8); }

template <std::size_t Room>
std::span<const std::uint8_t> said(const std::array<std::uint8_t, Room>& data, std::uint8_t length) {
  return std::span(data).first(length);
}

/// The place of a value in a table of the port; 0 if it is not there any more.
template <typename Get>
std::uint16_t index_where(std::uint16_t entries, Get&& is_it) {
  for (std::uint16_t i = 0; i < entries; ++i) {
    if (is_it(i)) return i;
  }
  return 0;
}

}  // namespace

Result<void> Client::perform(const calls::CreateEndpoint& m, calls::CreateEndpoint::Answer& a) {
  auto place = handles_.reserve(calls::ObjectKind::kEndpoint);
  if (!place) return place.error();
  const calls::Handle channel_handle = m.channel != 0 ? m.channel : first_channel_handle_;
  auto channel = handles_.use(channel_handle, calls::ObjectKind::kChannel);
  if (!channel) return channel.error();
  auto& connections = kernel_.connections();
  auto made = connections.create();
  if (!made) return made.error();
  // From here on the object owns it.
  std::shared_ptr<ClientEndpoint> endpoint;
  try {
    endpoint = std::make_shared<ClientEndpoint>(kernel_.device(), connections, *made);
  } catch (const std::bad_alloc&) {
    connections.destroy(*made);
    throw;
  }
  endpoint->space = static_cast<cm::PortSpace>(m.port_space);
  endpoint->channel_handle = channel_handle;
  endpoint->channel = channel.take();
  if (auto told = connections.announce(*made, place->handle(), as<ClientChannel>(endpoint->channel).channel); !told)
    return told;
  a.endpoint = place->handle();
  place->fill(std::move(endpoint));
  return {};
}

Result<void> Client::perform(const calls::BindEndpoint& m, calls::BindEndpoint::Answer& a) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    const auto port = kernel_.connections().bind(endpoint.id, endpoint.space, m.address, m.port);
    if (!port) return port.error();
    a.port = *port;
    return {};
  });
}

Result<void> Client::perform(const calls::Listen& m, calls::Listen::Answer&) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) {
    const auto services = m.services != 0 ? m.services : cm::kEveryService;
    return kernel_.connections().listen(endpoint.id, m.backlog, services);
  });
}

std::uint32_t Client::listening() {
  std::uint32_t count = 0;
  const UnderWay under_way(*this);
  for (const calls::Handle handle : closed_ ? std::vector<calls::Handle>() : handles_.handles(ClientEndpoint::kKind)) {
    static_cast<void>(with<ClientEndpoint>(handle, [&](ClientEndpoint& endpoint) -> Result<void> {
                        const auto facts = kernel_.connections().facts(endpoint.id);
                        if (facts && facts->listening) ++count;
                        return {};
                      }).ok());
  }
  return count;
}

Result<void> Client::perform(const calls::ResolveAddress& m, calls::ResolveAddress::Answer& a) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    // Of a group only the own address matters; nobody there can be asked for anything.
    const bool group = is_multicast(m.remote);
    if (group && endpoint.space != cm::PortSpace::kUdp) return Error::kInvalidParameter;
    auto& connections = kernel_.connections();
    const auto facts = connections.facts(endpoint.id);
    if (!facts) return facts.error();
    if (facts->state != cm::State::kIdle || facts->listening) return Error::kInvalidState;
    // A bound endpoint stays at its address.
    const auto source = connections.source_for(m.remote, m.local != Gid{} ? m.local : facts->local);
    if (!source) return source.error();
    // It has its port from here on, as one that is bound.
    if (facts->local_port == 0) {
      if (auto port = connections.bind(endpoint.id, endpoint.space, source->address, 0); !port) return port.error();
    }
    const bool known = group || station_of(m.remote).ok();
    auto posted =
        connections.post(endpoint.id, {.type = known ? cm::EventType::kAddressResolved : cm::EventType::kAddressError});
    if (!posted) return posted;
    endpoint.local = source->address;
    endpoint.remote = known && !group ? m.remote : Gid{};
    endpoint.remote_port = m.remote_port;
    a.local = source->address;
    a.sgid_index = source->index;
    return {};
  });
}

Result<void> Client::perform(const calls::ResolveRoute& m, calls::ResolveRoute::Answer&) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    if (endpoint.remote == Gid{}) return Error::kInvalidState;
    return kernel_.connections().post(endpoint.id, {.type = cm::EventType::kRouteResolved});
  });
}

Result<hw::QpType> Client::type_of_terms(const calls::ConnectionTerms& terms, cm::PortSpace space, std::uint32_t& qpn) {
  const auto found = [&]() -> Result<std::shared_ptr<ClientObject>> {
    if (terms.qp != 0) return handles_.find(terms.qp, calls::ObjectKind::kQp);
    for (const calls::Handle handle : handles_.handles(calls::ObjectKind::kQp)) {
      auto one = handles_.find(handle, calls::ObjectKind::kQp);
      if (one && static_cast<ClientQp&>(**one).object->qpn() == terms.qpn) return one;
    }
    return Error::kInvalidParameter;
  }();
  if (!found) return found.error();
  const KernelQp& object = *static_cast<ClientQp&>(**found).object;
  if ((object.type() == hw::QpType::kUd) != (space == cm::PortSpace::kUdp)) return Error::kInvalidParameter;
  qpn = object.qpn();
  return object.type();
}

Result<void> Client::perform(const calls::Connect& m, calls::Connect::Answer&) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    if (endpoint.remote == Gid{}) return Error::kInvalidState;
    cm::ConnectSpec spec;
    const auto type = type_of_terms(m.terms, endpoint.space, spec.qpn);
    if (!type) return type.error();
    spec.local = endpoint.local;
    spec.remote = endpoint.remote;
    spec.remote_port = endpoint.remote_port;
    spec.service = *type == hw::QpType::kUc ? cm::Service::kUc : cm::Service::kRc;
    spec.space = endpoint.space;
    spec.receive_psn = m.terms.receive_psn;
    spec.responder_resources = m.terms.responder_resources;
    spec.initiator_depth = m.terms.initiator_depth;
    spec.retry_count = m.terms.retry_count;
    spec.rnr_retry = m.terms.rnr_retry;
    spec.flow_control = m.terms.flow_control != 0;
    spec.srq = m.terms.srq != 0;
    spec.path_mtu =
        std::min(mtu_code(kernel_.options().connection_mtu), static_cast<std::uint8_t>(kernel_.limits().max_mtu));
    spec.data = said(m.data, m.data_length);
    return kernel_.connections().connect(endpoint.id, spec, endpoint.space == cm::PortSpace::kUdp);
  });
}

Result<void> Client::perform(const calls::Accept& m, calls::Accept::Answer&) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    cm::AcceptSpec spec;
    const auto type = type_of_terms(m.terms, endpoint.space, spec.qpn);
    if (!type) return type.error();
    spec.receive_psn = m.terms.receive_psn;
    spec.qkey = m.terms.qkey;
    spec.responder_resources = m.terms.responder_resources;
    spec.initiator_depth = m.terms.initiator_depth;
    spec.rnr_retry = m.terms.rnr_retry;
    spec.flow_control = m.terms.flow_control != 0;
    spec.srq = m.terms.srq != 0;
    spec.data = said(m.data, m.data_length);
    return kernel_.connections().accept(endpoint.id, spec);
  });
}

Result<void> Client::perform(const calls::Reject& m, calls::Reject::Answer&) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) {
    return kernel_.connections().reject(endpoint.id, said(m.data, m.data_length));
  });
}

Result<void> Client::perform(const calls::Establish& m, calls::Establish::Answer&) {
  return with<ClientEndpoint>(m.endpoint,
                              [&](ClientEndpoint& endpoint) { return kernel_.connections().establish(endpoint.id); });
}

Result<void> Client::perform(const calls::Disconnect& m, calls::Disconnect::Answer&) {
  return with<ClientEndpoint>(m.endpoint,
                              [&](ClientEndpoint& endpoint) { return kernel_.connections().disconnect(endpoint.id); });
}

Result<void> Client::perform(const calls::TakeConnectionEvent& m, calls::TakeConnectionEvent::Answer& a) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    auto& connections = kernel_.connections();
    const auto facts = connections.facts(endpoint.id);
    // What a request needs is there before it is taken.
    std::optional<HandleTable::Place> place;
    HandleTable::Use channel;
    if (facts && facts->listening) {
      auto reserved = handles_.reserve(calls::ObjectKind::kEndpoint);
      if (!reserved) return reserved.error();
      place.emplace(std::move(*reserved));
      auto used = handles_.use(endpoint.channel_handle, calls::ObjectKind::kChannel);
      if (!used) return used.error();
      channel = used.take();
    }
    const auto event = connections.take_event(endpoint.id);
    a.type = static_cast<std::uint8_t>(event.type);
    a.reason = event.reason;
    a.datagram = event.datagram;
    a.data_length = event.data_length;
    a.data = event.data;
    if (event.type != cm::EventType::kConnectRequest || !place) return {};
    std::shared_ptr<ClientEndpoint> incoming;
    try {
      incoming = std::make_shared<ClientEndpoint>(kernel_.device(), connections, event.incoming);
    } catch (const std::bad_alloc&) {
      connections.destroy(event.incoming);
      throw;
    }
    incoming->space = endpoint.space;
    incoming->channel_handle = endpoint.channel_handle;
    incoming->channel = std::move(channel);
    auto told = connections.announce(incoming->id, place->handle(), as<ClientChannel>(incoming->channel).channel);
    if (!told) return told;
    a.incoming = place->handle();
    place->fill(std::move(incoming));
    return {};
  });
}

Result<void> Client::perform(const calls::QueryEndpoint& m, calls::QueryEndpoint::Answer& a) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    const auto facts = kernel_.connections().facts(endpoint.id);
    if (!facts) return facts.error();
    PortTables& tables = kernel_.port_tables();
    const bool asked = facts->state == cm::State::kIdle && !facts->listening && endpoint.remote != Gid{};
    a.local = asked ? endpoint.local : facts->local;
    a.remote = asked ? endpoint.remote : facts->remote;
    const auto mac = tables.station(a.remote);
    a.remote_mac = mac && a.remote != Gid{} ? *mac : 0;
    a.receive_psn = facts->receive_psn;
    a.remote_qpn = facts->remote_qpn;
    a.send_psn = facts->send_psn;
    a.qkey = facts->qkey;
    a.flow_label = facts->flow_label;
    a.local_port = facts->local_port;
    a.remote_port = asked ? endpoint.remote_port : facts->remote_port;
    const auto pkey_index = tables.pkey_index_for(facts->pkey);
    a.pkey_index = pkey_index ? *pkey_index : 0;
    a.sgid_index = index_where(tables.gids(), [&](std::uint16_t i) { return *tables.gid(i) == a.local; });
    a.port_space = static_cast<std::uint16_t>(endpoint.space);
    a.state = static_cast<std::uint8_t>(facts->state);
    a.listening = facts->listening;
    a.active = facts->active;
    a.responder_resources = facts->responder_resources;
    a.initiator_depth = facts->initiator_depth;
    a.retry_count = facts->retry_count;
    a.rnr_retry = facts->rnr_retry;
    a.path_mtu = facts->path_mtu;
    a.ack_timeout = facts->ack_timeout;
    a.traffic_class = facts->traffic_class;
    a.hop_limit = facts->hop_limit;
    a.flow_control = facts->flow_control;
    a.srq = facts->srq;
    return {};
  });
}

Result<void> Client::perform(const calls::JoinGroup& m, calls::JoinGroup::Answer&) {
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    if (!is_multicast(m.group) || endpoint.space != cm::PortSpace::kUdp) return Error::kInvalidParameter;
    auto& connections = kernel_.connections();
    const auto facts = connections.facts(endpoint.id);
    if (!facts) return facts.error();
    const auto source = connections.source_for(m.group, facts->local);
    if (!source) return source.error();
    cm::Event event{.type = cm::EventType::kGroupJoined, .data_length = kGroupBytes};
    std::copy(m.group.begin(), m.group.end(), event.data.begin());
    event.data[kGroupIndexAt] = static_cast<std::uint8_t>(source->index >> 8);
    event.data[kGroupIndexAt + 1] = static_cast<std::uint8_t>(source->index);
    return connections.post(endpoint.id, event);
  });
}

Result<void> Client::perform(const calls::MoveEndpoint& m, calls::MoveEndpoint::Answer&) {
  const calls::Handle channel_handle = m.channel != 0 ? m.channel : first_channel_handle_;
  auto channel = handles_.use(channel_handle, calls::ObjectKind::kChannel);
  if (!channel) return channel.error();
  return with<ClientEndpoint>(m.endpoint, [&](ClientEndpoint& endpoint) -> Result<void> {
    auto moved = kernel_.connections().announce(endpoint.id, m.endpoint, as<ClientChannel>(*channel).channel);
    if (!moved) return moved;
    endpoint.channel = channel.take();
    endpoint.channel_handle = channel_handle;
    return moved;
  });
}

}  // namespace rnic::kmd
