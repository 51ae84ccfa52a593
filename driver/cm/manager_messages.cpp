// What comes from peers.
#include "driver/cm/endpoint.hpp"
#include "driver/cm/manager.hpp"
#include "driver/management.hpp"

namespace rnic::cm {
namespace {

/// Behind the header of annex A11, which the manager has read.
template <std::size_t Room>
std::span<const std::uint8_t> consumers_part(const PrivateData<Room>& data) {
  return std::span(data).subspan(IpHeader::kBytes);
}

Event event_with(EventType type, std::span<const std::uint8_t> data, std::uint16_t reason = 0) {
  return {.type = type,
          .reason = reason,
          .data_length = static_cast<std::uint8_t>(data.size()),
          .data = private_data<224>(data)};
}

}  // namespace

void Manager::receive(const Gid& local, const Gid& remote, std::span<const std::uint8_t> mad, std::uint64_t now) {
  ++counters_.received;
  const Decoded decoded = decode(mad);
  if (!decoded.message) {
    ++counters_.malformed;
    return;
  }
  // Connections are between two ports.
  if (is_multicast(local) || is_multicast(remote) || !around_.is_own(local)) {
    ++counters_.unfounded;
    return;
  }
  try {
    std::visit([&](const auto& body) { take(local, remote, *decoded.message, body, now); }, decoded.message->body);
  } catch (const std::bad_alloc&) {
    ++counters_.no_memory;
  }
}

Manager::Endpoint* Manager::find_local(std::uint32_t id) const {
  const auto found = by_local_id_.find(id);
  return found == by_local_id_.end() ? nullptr : find(found->second);
}

Manager::Endpoint* Manager::find_peer(const Peers& peers, const Gid& gid, std::uint32_t number) const {
  const auto found = peers.find({gid, number});
  return found == peers.end() ? nullptr : find(found->second);
}

Manager::Endpoint* Manager::find_pair(const Gid& local, const Gid& remote, std::uint32_t own_id,
                                      std::uint32_t peer_id) {
  Endpoint* const endpoint = find_local(own_id);
  if (endpoint == nullptr || endpoint->facts.local != local || endpoint->facts.remote != remote) return nullptr;
  // The active side learns the peer's ID from the first message that has it.
  if (endpoint->remote_id != 0 && endpoint->remote_id != peer_id) return nullptr;
  return endpoint;
}

void Manager::take_known(Endpoint* endpoint, Input input, std::uint64_t now, const Details& details) {
  if (endpoint == nullptr) {
    ++counters_.unfounded;
  } else if (!apply(*endpoint, input, now, details)) {
    ++counters_.unexpected;
  }
}

void Manager::refuse(const Gid& local, const Gid& remote, const Message& message, std::uint32_t peer_id, About about,
                     Reason reason) {
  ++counters_.refused;
  say_at_once(local, remote, {message.transaction, Rej{.remote_id = peer_id, .about = about, .reason = reason}});
}

void Manager::refuse(const Gid& local, const Gid& remote, const Message& message, const SidrReq& req,
                     SidrRep::Status status) {
  ++counters_.refused;
  say_at_once(
      local, remote,
      {message.transaction, SidrRep{.request_id = req.request_id, .status = status, .service_id = req.service_id}});
}

Manager::Endpoint* Manager::listener_for(std::uint64_t service_id, const Gid& local) const {
  const auto port = port_of(service_id);
  const auto owner = port ? ports_.find(*port, local) : std::nullopt;
  Endpoint* const endpoint = owner ? find(*owner) : nullptr;
  return endpoint != nullptr && endpoint->facts.listening ? endpoint : nullptr;
}

/// All that may fail for want of memory comes before anything is changed. Null: there is no room for another endpoint.
/// Throws std::bad_alloc.
Manager::Endpoint* Manager::take_request(Endpoint& listener, const Gid& local, const Gid& remote,
                                         const Message& message, const IpHeader& header,
                                         std::span<const std::uint8_t> data, bool datagram) {
  auto made = make_endpoint();
  if (!made) return nullptr;
  Endpoint& endpoint = **made;
  try {
    auto event = event_with(EventType::kConnectRequest, data);
    event.incoming = endpoint.id;
    event.datagram = datagram;
    listener.incoming.push_back(event);
  } catch (const std::bad_alloc&) {
    forget(endpoint);
    throw;
  }
  ++listener.waiting;
  endpoint.transaction = message.transaction;
  endpoint.facts.space = listener.facts.space;
  endpoint.facts.local = local;
  endpoint.facts.local_port = listener.facts.local_port;
  endpoint.facts.remote = remote;
  endpoint.facts.remote_port = header.source_port;
  around_.tell(listener.id);
  return &endpoint;
}

bool Manager::is_stale(Endpoint& older, std::uint64_t now) {
  const State state = older.facts.state;
  const Details gone{.event = {.type = EventType::kRejected, .reason = static_cast<std::uint16_t>(Reason::kStale)}};
  if (state == State::kReqReceived || state == State::kMraReqSent) {
    apply(older, Input::kRej, now, gone);
    return false;
  }
  // What the peer has forgotten ends here, too (12.9.8).
  if (!apply(older, Input::kDisconnect, now)) apply(older, Input::kRej, now, gone);
  return true;
}

void Manager::take(const Gid& local, const Gid& remote, const Message& message, const Req& req, std::uint64_t now) {
  if (Endpoint* const known = find_peer(by_peer_id_, remote, req.local_id); known != nullptr) {
    return take_known(known->facts.active || known->facts.local != local ? nullptr : known, Input::kReq, now);
  }
  const auto no = [&](Reason reason) { refuse(local, remote, message, req.local_id, About::kReq, reason); };
  if (req.primary.local_gid != remote) {
    ++counters_.unfounded;
    return;
  }
  if (req.primary.remote_gid != local || !around_.is_in_partition(req.pkey)) return no(Reason::kInvalidGid);
  if (req.local_id == 0) return no(Reason::kInvalidCommunicationId);
  if (Endpoint* const stale = find_peer(by_peer_qpn_, remote, req.qpn); stale != nullptr) {
    if (is_stale(*stale, now)) return no(Reason::kStale);
  }
  if (req.service > Service::kUc || req.rdc_exists || req.extended_service != 0) return no(Reason::kInvalidService);
  if (!is_mtu(req.path_mtu)) return no(Reason::kInvalidMtu);
  if (!is_client_qpn(req.qpn)) return no(Reason::kNoQp);
  Endpoint* const listener = listener_for(req.service_id, local);
  if (listener == nullptr) return no(Reason::kInvalidServiceId);
  if ((listener->services >> static_cast<unsigned>(req.service) & 1) == 0) return no(Reason::kInvalidService);
  const auto header = read_ip_header(req.data);
  if (!header || header->source != remote || header->destination != local) {
    ++counters_.unfounded;
    return;
  }
  if (listener->waiting >= listener->backlog) return no(Reason::kNoResources);
  const auto own_id = draw_id();
  const PeerKey id{remote, req.local_id}, qpn{remote, req.qpn};
  Endpoint* endpoint = nullptr;
  const auto undo = [&] {
    by_local_id_.erase(own_id);
    by_peer_id_.erase(id);
    by_peer_qpn_.erase(qpn);
  };
  try {
    by_local_id_.emplace(own_id, last_id_ + 1);
    by_peer_id_.emplace(id, last_id_ + 1);
    by_peer_qpn_.emplace(qpn, last_id_ + 1);
    endpoint = take_request(*listener, local, remote, message, *header, consumers_part(req.data), false);
  } catch (const std::bad_alloc&) {
    undo();
    throw;
  }
  if (endpoint == nullptr) {
    undo();
    return no(Reason::kNoResources);
  }
  endpoint->local_id = own_id;
  endpoint->remote_id = req.local_id;
  endpoint->service_id = req.service_id;
  endpoint->last_of_peer = About::kReq;
  // What the peer promises, within what is sound here.
  const auto promised = std::max(req.local_response_timeout, config_.response_timeout);
  endpoint->answer_ns = time_ns(std::min(promised, config_.longest_wait)) + time_ns(config_.packet_lifetime);
  // Its last repetition, when each waits for our answer and its way.
  const auto patience = std::max(req.remote_response_timeout, config_.response_timeout);
  endpoint->asked_until = now + req.max_retries * (time_ns(std::min(patience, config_.longest_wait)) +
                                                   2 * time_ns(config_.packet_lifetime));
  Facts& facts = endpoint->facts;
  facts.state = State::kReqReceived;
  facts.service = req.service;
  facts.remote_qpn = req.qpn;
  facts.send_psn = req.psn;
  facts.responder_resources = req.responder_resources;
  facts.initiator_depth = req.initiator_depth;
  facts.retry_count = req.retry_count;
  facts.rnr_retry = req.rnr_retry;
  facts.path_mtu = req.path_mtu;
  facts.ack_timeout = req.primary.ack_timeout;
  facts.traffic_class = req.primary.traffic_class;
  facts.hop_limit = req.primary.hop_limit;
  facts.flow_label = req.primary.flow_label;
  facts.pkey = req.pkey;
  facts.flow_control = req.flow_control;
  facts.srq = req.srq;
}

void Manager::take(const Gid& local, const Gid& remote, const Message&, const Mra& mra, std::uint64_t now) {
  Endpoint* const endpoint = find_pair(local, remote, mra.remote_id, mra.local_id);
  const Details wait{.wait_ns = time_ns(std::min(mra.service_timeout, config_.longest_wait))};
  if (mra.about == About::kOther) {
    ++counters_.unexpected;
  } else {
    take_known(endpoint, mra.about == About::kReq ? Input::kMraReq : Input::kMraRep, now, wait);
  }
}

void Manager::take(const Gid& local, const Gid& remote, const Message&, const Rej& rej, std::uint64_t now) {
  // Who never had an answer does not know the ID of this side.
  Endpoint* endpoint = nullptr;
  if (rej.remote_id == 0) {
    endpoint = find_peer(by_peer_id_, remote, rej.local_id);
    if (endpoint != nullptr && endpoint->facts.local != local) endpoint = nullptr;
  } else {
    endpoint = find_local(rej.remote_id);
    const bool same = endpoint != nullptr && endpoint->facts.local == local && endpoint->facts.remote == remote &&
                      (rej.local_id == 0 || endpoint->remote_id == 0 || endpoint->remote_id == rej.local_id);
    if (!same) endpoint = nullptr;
  }
  const bool over = endpoint != nullptr &&
                    (endpoint->facts.state == State::kEstablished || endpoint->facts.state == State::kDreqSent);
  take_known(endpoint, Input::kRej, now,
             {.event = over ? Event{.type = EventType::kDisconnected}
                            : event_with(EventType::kRejected, rej.data, static_cast<std::uint16_t>(rej.reason))});
}

void Manager::take(const Gid& local, const Gid& remote, const Message& message, const Rep& rep, std::uint64_t now) {
  Endpoint* const endpoint = find_pair(local, remote, rep.remote_id, rep.local_id);
  if (endpoint == nullptr)
    return refuse(local, remote, message, rep.local_id, About::kRep, Reason::kInvalidCommunicationId);
  const State state = endpoint->facts.state;
  if (!endpoint->facts.active || rep.local_id == 0) {
    ++counters_.unfounded;
    return;
  }
  if (state != State::kReqSent && state != State::kMraReqReceived) return take_known(endpoint, Input::kRep, now);
  if (!is_client_qpn(rep.qpn)) {
    ++counters_.unfounded;
    return;
  }
  const PeerKey qpn{remote, rep.qpn}, id{remote, rep.local_id};
  if (by_peer_qpn_.contains(qpn) || by_peer_id_.contains(id))
    return refuse(local, remote, message, rep.local_id, About::kRep, Reason::kStale);
  const auto by_qpn = by_peer_qpn_.emplace(qpn, endpoint->id).first;
  try {
    by_peer_id_.emplace(id, endpoint->id);
  } catch (const std::bad_alloc&) {
    by_peer_qpn_.erase(by_qpn);
    throw;
  }
  endpoint->remote_id = rep.local_id;
  endpoint->last_of_peer = About::kRep;
  Facts& facts = endpoint->facts;
  facts.remote_qpn = rep.qpn;
  facts.send_psn = rep.psn;
  facts.responder_resources = rep.responder_resources;
  facts.initiator_depth = rep.initiator_depth;
  facts.rnr_retry = rep.rnr_retry;
  facts.flow_control = rep.flow_control;
  facts.srq = rep.srq;
  take_known(endpoint, Input::kRep, now, {.event = event_with(EventType::kConnectResponse, rep.data)});
}

void Manager::take(const Gid& local, const Gid& remote, const Message&, const Rtu& rtu, std::uint64_t now) {
  Endpoint* const endpoint = find_pair(local, remote, rtu.remote_id, rtu.local_id);
  take_known(endpoint, Input::kRtu, now, {.event = event_with(EventType::kEstablished, rtu.data)});
}

void Manager::take(const Gid& local, const Gid& remote, const Message& message, const Dreq& dreq, std::uint64_t now) {
  Endpoint* const endpoint = find_pair(local, remote, dreq.remote_id, dreq.local_id);
  if (endpoint == nullptr) {
    // Of a connection that is forgotten here: the peer must not go on asking.
    ++counters_.unfounded;
    return say_at_once(local, remote,
                       {message.transaction, Drep{.local_id = dreq.remote_id, .remote_id = dreq.local_id}});
  }
  if (dreq.remote_qpn != endpoint->facts.local_qpn) {
    ++counters_.unfounded;
    return;
  }
  endpoint->transaction = message.transaction;
  take_known(endpoint, Input::kDreq, now, {.event = event_with(EventType::kDisconnected, dreq.data)});
}

void Manager::take(const Gid& local, const Gid& remote, const Message&, const Drep& drep, std::uint64_t now) {
  Endpoint* const endpoint = find_pair(local, remote, drep.remote_id, drep.local_id);
  take_known(endpoint, Input::kDrep, now, {.event = event_with(EventType::kDisconnected, drep.data)});
}

void Manager::take(const Gid& local, const Gid& remote, const Message& message, const SidrReq& req, std::uint64_t now) {
  if (Endpoint* const known = find_peer(by_request_, remote, req.request_id); known != nullptr)
    return take_known(known->facts.local == local ? known : nullptr, Input::kSidrReq, now);
  Endpoint* const listener = listener_for(req.service_id, local);
  if (listener == nullptr || !around_.is_in_partition(req.pkey))
    return refuse(local, remote, message, req, SidrRep::Status::kUnsupportedService);
  const auto header = read_ip_header(req.data);
  if (!header || header->source != remote || header->destination != local) {
    ++counters_.unfounded;
    return;
  }
  if (listener->waiting >= listener->backlog) return refuse(local, remote, message, req, SidrRep::Status::kNoQp);
  const PeerKey id{remote, req.request_id};
  by_request_.emplace(id, last_id_ + 1);
  Endpoint* endpoint = nullptr;
  try {
    endpoint = take_request(*listener, local, remote, message, *header, consumers_part(req.data), true);
  } catch (const std::bad_alloc&) {
    by_request_.erase(id);
    throw;
  }
  if (endpoint == nullptr) {
    by_request_.erase(id);
    return refuse(local, remote, message, req, SidrRep::Status::kNoQp);
  }
  endpoint->remote_id = req.request_id;
  endpoint->service_id = req.service_id;
  // Its message does not say how long the peer waits, nor how often it asks.
  endpoint->answer_ns = time_ns(config_.response_timeout) + time_ns(config_.packet_lifetime);
  endpoint->asked_until = now + config_.max_retries * endpoint->answer_ns;
  endpoint->facts.pkey = req.pkey;
  endpoint->facts.state = State::kSidrReceived;
}

void Manager::take(const Gid& local, const Gid& remote, const Message&, const SidrRep& rep, std::uint64_t now) {
  Endpoint* const endpoint = find_pair(local, remote, rep.request_id, 0);
  const bool waits = endpoint != nullptr && endpoint->facts.state == State::kSidrReqSent;
  if (rep.status != SidrRep::Status::kSuccess) {
    return take_known(endpoint, Input::kSidrRefused, now,
                      {.event = event_with(EventType::kRejected, rep.data, static_cast<std::uint16_t>(rep.status))});
  }
  if (waits) {
    if (!is_client_qpn(rep.qpn)) {
      ++counters_.unfounded;
      return;
    }
    endpoint->facts.remote_qpn = rep.qpn;
    endpoint->facts.qkey = rep.qkey;
  }
  take_known(endpoint, Input::kSidrRep, now, {.event = event_with(EventType::kEstablished, rep.data)});
}

void Manager::take(const Gid& local, const Gid& remote, const Message&, const Lap& lap, std::uint64_t now) {
  take_known(find_pair(local, remote, lap.remote_id, lap.local_id), Input::kLap, now);
}

/// Nobody has asked.
void Manager::take(const Gid&, const Gid&, const Message&, const Apr&, std::uint64_t) { ++counters_.unexpected; }

}  // namespace rnic::cm
