#include "driver/cm/manager.hpp"

#include "driver/cm/endpoint.hpp"
#include "driver/management.hpp"

namespace rnic::cm {
namespace {

// Of what a consumer has not taken; a connection adds at most three more.
constexpr std::size_t kMostWaiting = 4;
constexpr std::size_t kEventRoom = 8;
constexpr Gid kNobody{};

bool in_bits(std::uint64_t value, unsigned bits) { return value >> bits == 0; }

}  // namespace

Manager::Manager(const Config& config, Surroundings& surroundings)
    : config_(config), around_(surroundings), ids_(surroundings.random(), config.id_bits) {}

Manager::~Manager() = default;

Manager::Endpoint* Manager::find(EndpointId id) const {
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : found->second.get();
}

Result<Manager::Endpoint*> Manager::make_endpoint() {
  if (endpoints_.size() >= config_.max_endpoints) return Error::kOutOfResources;
  auto made = std::make_unique<Endpoint>();
  made->id = last_id_ + 1;
  made->events.reserve(kEventRoom);
  // A node of the set, so that starting a timer needs no memory.
  Timers one{{kNever, made->id}};
  made->timer = one.extract(one.begin());
  Endpoint* const endpoint = made.get();
  endpoints_.emplace(made->id, std::move(made));
  ++last_id_;
  return endpoint;
}

Result<EndpointId> Manager::create() {
  return or_out_of_memory([&]() -> Result<EndpointId> {
    auto made = make_endpoint();
    if (!made) return made.error();
    return (*made)->id;
  });
}

void Manager::destroy(EndpointId id, std::uint64_t now) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr || !endpoint->owned) return;
  endpoint->owned = false;
  endpoint->events.clear();
  if (endpoint->facts.listening) {
    // Who waits at the door is sent away.
    endpoint->facts.listening = false;
    for (const Event& event : endpoint->incoming) destroy(event.incoming, now);
    endpoint->incoming.clear();
  }
  release_port(*endpoint);
  apply(*endpoint, Input::kDestroy, now);
  // Without an owner it may have gone already.
  if (Endpoint* const left = find(id); left != nullptr && left->facts.state == State::kIdle) forget(*left);
}

Result<std::uint16_t> Manager::bind(EndpointId id, PortSpace space, const Gid& address, std::uint16_t port) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  if (endpoint->bound || endpoint->facts.state != State::kIdle) return Error::kInvalidState;
  if (address != kNobody && !around_.is_own(address)) return Error::kNotFound;
  auto given = ports_.bind(id, space, address, port);
  if (!given) return given;
  endpoint->bound = true;
  endpoint->bound_to = endpoint->facts.local = address;
  endpoint->facts.space = space;
  endpoint->facts.local_port = *given;
  return given;
}

void Manager::release_port(Endpoint& endpoint) {
  if (!endpoint.bound) return;
  ports_.release(endpoint.id, endpoint.facts.space, endpoint.bound_to, endpoint.facts.local_port);
  endpoint.bound = false;
}

Result<void> Manager::listen(EndpointId id, std::uint32_t backlog, std::uint8_t services) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  if (!endpoint->bound || endpoint->facts.state != State::kIdle) return Error::kInvalidState;
  endpoint->facts.listening = true;
  endpoint->backlog = backlog == 0 || backlog > kMostBacklog ? kMostBacklog : backlog;
  endpoint->services = services;
  return {};
}

Result<void> Manager::check(const Endpoint& endpoint, const ConnectSpec& spec, std::size_t most_data) const {
  if (endpoint.facts.state != State::kIdle || endpoint.facts.listening) return Error::kInvalidState;
  if (endpoint.events.size() >= kMostWaiting) return Error::kBusy;
  const bool sound = spec.data.size() <= most_data && is_client_qpn(spec.qpn) && in_bits(spec.receive_psn, 24) &&
                     spec.service <= Service::kUc && in_bits(spec.retry_count, 3) && in_bits(spec.rnr_retry, 3) &&
                     is_mtu(spec.path_mtu) && in_bits(spec.ack_timeout, 5) && in_bits(spec.flow_label, 20) &&
                     spec.remote_port != 0 && spec.remote != kNobody && !is_multicast(spec.remote) &&
                     is_ipv4(spec.local) == is_ipv4(spec.remote);
  if (!sound) return Error::kInvalidParameter;
  if (!around_.is_own(spec.local) || !around_.is_in_partition(spec.pkey)) return Error::kNotFound;
  return {};
}

std::uint32_t Manager::draw_id() {
  for (;;) {
    const std::uint32_t id = ids_.at(ids_drawn_++);
    if (!by_local_id_.contains(id)) return id;
  }
}

Result<void> Manager::begin(Endpoint& endpoint, const ConnectSpec& spec) {
  Facts& facts = endpoint.facts;
  if (!endpoint.bound) {
    if (auto bound = bind(endpoint.id, spec.space, spec.local, 0); !bound) return bound.error();
  }
  const auto id = draw_id();
  by_local_id_.emplace(id, endpoint.id);
  endpoint.local_id = id;
  endpoint.remote_id = 0;
  endpoint.transaction = around_.random();
  endpoint.answer_ns = time_ns(config_.response_timeout) + time_ns(config_.packet_lifetime);
  endpoint.wish = spec;
  endpoint.wish->data = {};
  facts.local = spec.local;
  facts.remote = spec.remote;
  facts.remote_port = spec.remote_port;
  facts.active = true;
  facts.service = spec.service;
  facts.local_qpn = spec.qpn;
  facts.receive_psn = spec.receive_psn;
  facts.path_mtu = spec.path_mtu;
  facts.ack_timeout = spec.ack_timeout;
  facts.retry_count = spec.retry_count;
  facts.traffic_class = spec.traffic_class;
  facts.hop_limit = spec.hop_limit;
  facts.flow_label = spec.flow_label;
  facts.pkey = spec.pkey;
  endpoint.service_id = service_id_of(facts.space, spec.remote_port);
  return {};
}

Result<void> Manager::connect(EndpointId id, const ConnectSpec& spec, std::uint64_t now) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  if (auto good = check(*endpoint, spec, kMostConnectData); !good) return good;
  if (by_qpn_.contains(spec.qpn)) return Error::kBusy;
  return or_out_of_memory([&]() -> Result<void> {
    if (auto begun = begin(*endpoint, spec); !begun) return begun;
    try {
      by_qpn_.emplace(spec.qpn, id);
    } catch (const std::bad_alloc&) {
      end_connection(*endpoint);
      throw;
    }
    const auto header = encode(IpHeader{endpoint->facts.local_port, spec.local, spec.remote});
    endpoint->request_data = private_data<92>(spec.data, IpHeader::kBytes);
    std::copy(header.begin(), header.end(), endpoint->request_data.begin());
    apply(*endpoint, Input::kConnect, now);
    return {};
  });
}

Result<void> Manager::ask(EndpointId id, const ConnectSpec& spec, std::uint64_t now) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  if (auto good = check(*endpoint, spec, kMostAskData); !good) return good;
  return or_out_of_memory([&]() -> Result<void> {
    if (auto begun = begin(*endpoint, spec); !begun) return begun;
    const auto header = encode(IpHeader{endpoint->facts.local_port, spec.local, spec.remote});
    endpoint->ask_data = private_data<216>(spec.data, IpHeader::kBytes);
    std::copy(header.begin(), header.end(), endpoint->ask_data.begin());
    apply(*endpoint, Input::kAsk, now);
    return {};
  });
}

Result<void> Manager::accept(EndpointId id, const AcceptSpec& spec, std::uint64_t now) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  const bool datagram = endpoint->facts.state == State::kSidrReceived;
  if (find_rule(endpoint->facts.state, Input::kAccept) == nullptr) return Error::kInvalidState;
  if (spec.data.size() > (datagram ? kMostDatagramAcceptData : kMostAcceptData) || !is_client_qpn(spec.qpn) ||
      !in_bits(spec.receive_psn, 24) || !in_bits(spec.rnr_retry, 3))
    return Error::kInvalidParameter;
  if (!datagram && by_qpn_.contains(spec.qpn)) return Error::kBusy;
  return or_out_of_memory([&]() -> Result<void> {
    if (!datagram) by_qpn_.emplace(spec.qpn, id);
    endpoint->facts.local_qpn = spec.qpn;
    endpoint->facts.receive_psn = spec.receive_psn;
    endpoint->answer = spec;
    endpoint->answer.data = {};
    endpoint->answer_data = private_data<196>(spec.data);
    apply(*endpoint, Input::kAccept, now);
    return {};
  });
}

Result<void> Manager::reject(EndpointId id, std::span<const std::uint8_t> data, std::uint64_t now) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  if (data.size() > kMostRejectData) return Error::kInvalidParameter;
  return apply(*endpoint, Input::kReject, now, {.data = data}) ? Result<void>() : Error::kInvalidState;
}

Result<void> Manager::establish(EndpointId id, std::uint64_t now) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  return apply(*endpoint, Input::kReady, now) ? Result<void>() : Error::kInvalidState;
}

Result<void> Manager::disconnect(EndpointId id, std::uint64_t now) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  return apply(*endpoint, Input::kDisconnect, now) ? Result<void>() : Error::kInvalidState;
}

void Manager::communication_established(std::uint32_t qpn, std::uint64_t now) {
  const auto found = by_qpn_.find(qpn);
  Endpoint* const endpoint = found == by_qpn_.end() ? nullptr : find(found->second);
  if (endpoint != nullptr) apply(*endpoint, Input::kCommEstablished, now, {.event = {.type = EventType::kEstablished}});
}

Result<void> Manager::post(EndpointId id, const Event& event) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  if (endpoint->events.size() >= kMostWaiting) return Error::kBusy;
  tell(*endpoint, event);
  return {};
}

Event Manager::take_event(EndpointId id) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return {};
  if (!endpoint->incoming.empty()) {
    const Event event = endpoint->incoming.front();
    endpoint->incoming.pop_front();
    --endpoint->waiting;
    return event;
  }
  if (endpoint->events.empty()) return {};
  const Event event = endpoint->events.front();
  endpoint->events.erase(endpoint->events.begin());
  return event;
}

bool Manager::has_events(EndpointId id) const {
  const Endpoint* const endpoint = find(id);
  return endpoint != nullptr && (!endpoint->incoming.empty() || !endpoint->events.empty());
}

Result<Facts> Manager::facts(EndpointId id) const {
  const Endpoint* const endpoint = find(id);
  if (endpoint == nullptr) return Error::kNotFound;
  return endpoint->facts;
}

void Manager::run_timers(std::uint64_t now) {
  while (!timers_.empty() && timers_.begin()->at <= now) {
    Endpoint& endpoint = *find(timers_.begin()->of);
    stop_timer(endpoint);
    if (endpoint.facts.state == State::kTimeWait) {
      apply(endpoint, Input::kTimeWaitOver, now, {.event = {.type = EventType::kTimeWaitExit}});
    } else if (endpoint.retries_left != 0) {
      --endpoint.retries_left;
      apply(endpoint, Input::kTimeout, now);
    } else {
      const bool over = endpoint.facts.state == State::kDreqSent;
      apply(endpoint, Input::kRetriesOver, now,
            {.event = {.type = over ? EventType::kDisconnected : EventType::kUnreachable,
                       .reason = static_cast<std::uint16_t>(Reason::kTimeout)}});
    }
  }
}

std::uint64_t Manager::next_deadline() const { return timers_.empty() ? kNever : timers_.begin()->at; }

void Manager::lose_device() {
  for (auto next = endpoints_.begin(); next != endpoints_.end();) {
    Endpoint& endpoint = *next++->second;
    if (endpoint.facts.state == State::kIdle) continue;
    endpoint.facts.state = State::kIdle;
    tell(endpoint, {.type = EventType::kDeviceRemoved});
    end_connection(endpoint);
  }
}

}  // namespace rnic::cm
