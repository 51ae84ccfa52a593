// What a line of the state table makes happen.
#include <algorithm>
#include <utility>

#include "driver/cm/endpoint.hpp"
#include "driver/cm/manager.hpp"

namespace rnic::cm {
namespace {

constexpr std::uint8_t kPacketRate = 16;  // 100 Gb/s (static rate of a path record)

}  // namespace

bool Manager::apply(Endpoint& endpoint, Input input, std::uint64_t now, const Details& details) {
  const Rule* const rule = find_rule(endpoint.facts.state, input);
  if (rule == nullptr) return false;
  act(endpoint, *rule, details, now);
  endpoint.facts.state = rule->next;
  if (rule->next == State::kIdle && rule->state != State::kIdle) end_connection(endpoint);
  return true;
}

/// Messages first: they say where the connection was.
void Manager::act(Endpoint& e, const Rule& rule, const Details& details, std::uint64_t now) {
  const auto does = [&rule](Action action) { return has(rule.actions, action); };
  const Facts& facts = e.facts;
  if (does(Action::kSendReq)) {
    const ConnectSpec& wish = *e.wish;
    say(e, Req{.local_id = e.local_id,
               .service_id = e.service_id,
               .ca_guid = config_.guid,
               .qpn = wish.qpn,
               .responder_resources = wish.responder_resources,
               .initiator_depth = wish.initiator_depth,
               .remote_response_timeout = config_.response_timeout,
               .service = wish.service,
               .flow_control = wish.flow_control,
               .psn = wish.receive_psn,
               .local_response_timeout = config_.response_timeout,
               .retry_count = wish.retry_count,
               .pkey = wish.pkey,
               .path_mtu = wish.path_mtu,
               .rnr_retry = wish.rnr_retry,
               .max_retries = config_.max_retries,
               .srq = wish.srq,
               .primary = {.local_gid = wish.local,
                           .remote_gid = wish.remote,
                           .flow_label = wish.flow_label,
                           .packet_rate = kPacketRate,
                           .traffic_class = wish.traffic_class,
                           .hop_limit = wish.hop_limit,
                           .ack_timeout = wish.ack_timeout},
               .data = e.request_data});
  }
  if (does(Action::kSendMraReq) || does(Action::kSendMraRep)) {
    say(e, Mra{.local_id = e.local_id,
               .remote_id = e.remote_id,
               .about = does(Action::kSendMraReq) ? About::kReq : About::kRep,
               .service_timeout = does(Action::kSendMraReq) ? config_.consumer_time : config_.ready_time});
    if (does(Action::kSendMraReq)) e.asked_until += time_ns(config_.consumer_time);
  }
  if (does(Action::kSendRej) || does(Action::kSendRejTimeout)) {
    say(e, Rej{.local_id = e.local_id,
               .remote_id = e.remote_id,
               .about = does(Action::kSendRejTimeout) ? About::kOther : e.last_of_peer,
               .reason = does(Action::kSendRejTimeout) ? Reason::kTimeout : Reason::kConsumer,
               .data = private_data<148>(details.data)});
    // Nothing was answered, so the peer may ask again with the same queue pair, at once.
    if (rule.state == State::kReqReceived || rule.state == State::kMraReqSent)
      by_peer_qpn_.erase({facts.remote, facts.remote_qpn});
  }
  if (does(Action::kSendRep)) {
    say(e, Rep{.local_id = e.local_id,
               .remote_id = e.remote_id,
               .qpn = e.answer.qpn,
               .psn = e.answer.receive_psn,
               .responder_resources = e.answer.responder_resources,
               .initiator_depth = e.answer.initiator_depth,
               .flow_control = e.answer.flow_control,
               .rnr_retry = e.answer.rnr_retry,
               .srq = e.answer.srq,
               .ca_guid = config_.guid,
               .data = e.answer_data});
  }
  if (does(Action::kSendRtu)) say(e, Rtu{.local_id = e.local_id, .remote_id = e.remote_id});
  if (does(Action::kSendDreq)) {
    e.transaction = around_.random();
    say(e, Dreq{.local_id = e.local_id, .remote_id = e.remote_id, .remote_qpn = facts.remote_qpn});
  }
  if (does(Action::kSendDrep)) say(e, Drep{.local_id = e.local_id, .remote_id = e.remote_id});
  if (does(Action::kSendApr))
    say(e, Apr{.local_id = e.local_id, .remote_id = e.remote_id, .status = Apr::kNotSupported});
  if (does(Action::kSendSidrReq))
    say(e, SidrReq{.request_id = e.local_id, .pkey = facts.pkey, .service_id = e.service_id, .data = e.ask_data});
  if (does(Action::kSendSidrRep)) {
    say(e, SidrRep{.request_id = e.remote_id,
                   .qpn = e.answer.qpn,
                   .service_id = e.service_id,
                   .qkey = e.answer.qkey,
                   .data = private_data<136>(e.answer_data)});
  }
  if (does(Action::kSendSidrRejected)) {
    say(e, SidrRep{.request_id = e.remote_id,
                   .status = SidrRep::Status::kRejected,
                   .service_id = e.service_id,
                   .data = private_data<136>(details.data)});
  }
  if (does(Action::kRepeat)) {
    if (e.last) {
      around_.send(facts.local, facts.remote, *e.last);
      ++counters_.sent;
      ++counters_.repeated;
    }
    if (rule.input == Input::kTimeout) start_timer(e, now + e.answer_ns);
  }
  if (does(Action::kStop)) stop_timer(e);
  if (does(Action::kAwait)) {
    e.retries_left = config_.max_retries;
    start_timer(e, now + e.answer_ns);
  }
  if (does(Action::kWaitOn)) start_timer(e, now + e.answer_ns + details.wait_ns);
  if (does(Action::kLinger)) start_timer(e, linger_until(e, rule.state, now));
  if (does(Action::kTell)) tell(e, details.event);
}

/// TimeWait lasts twice the way of a message. Who has answered a request once and for all waits for it to be asked
/// again, too, in case the answer is lost: once more, as long as the peer waits for an answer and was told to wait;
/// and, unless too many do so, until the peer has asked for the last time, whichever of its messages are lost.
std::uint64_t Manager::linger_until(Endpoint& endpoint, State from, std::uint64_t now) {
  const std::uint64_t way = 2 * time_ns(config_.packet_lifetime);
  if (from != State::kTimeWait) {
    const bool told_to_wait = from == State::kMraReqSent;
    const bool unanswered = told_to_wait || from == State::kReqReceived || from == State::kSidrReceived;
    endpoint.linger_ns =
        way + (told_to_wait ? time_ns(config_.consumer_time) : 0) + (unanswered ? endpoint.answer_ns : 0);
    if ((unanswered || from == State::kRepSent) && remembered_ < config_.max_remembered) {
      endpoint.remembered = true;
      ++remembered_;
    }
  }
  const std::uint64_t once_more = now + endpoint.linger_ns;
  return endpoint.remembered ? std::max(once_more, endpoint.asked_until + way) : once_more;
}

template <typename Body>
void Manager::say(Endpoint& endpoint, const Body& body) {
  const Mad mad = encode({endpoint.transaction, body});
  // An APR and a MRA are no message whose answer is awaited.
  if constexpr (Body::kAttribute != Attribute::kApr && Body::kAttribute != Attribute::kMra) endpoint.last = mad;
  ++counters_.sent;
  around_.send(endpoint.facts.local, endpoint.facts.remote, mad);
}

void Manager::say_at_once(const Gid& local, const Gid& remote, const Message& message) {
  ++counters_.sent;
  around_.send(local, remote, encode(message));
}

void Manager::start_timer(Endpoint& endpoint, std::uint64_t at) {
  stop_timer(endpoint);
  endpoint.timer.value() = {at, endpoint.id};
  endpoint.due = at;
  timers_.insert(std::move(endpoint.timer));
}

void Manager::stop_timer(Endpoint& endpoint) {
  if (endpoint.due == kNever) return;
  endpoint.timer = timers_.extract({endpoint.due, endpoint.id});
  endpoint.due = kNever;
}

void Manager::tell(Endpoint& endpoint, const Event& event) {
  if (!endpoint.owned) return;
  endpoint.events.push_back(event);
  around_.tell(endpoint.id);
}

void Manager::end_connection(Endpoint& endpoint) {
  stop_timer(endpoint);
  const auto erase_own = [&](auto& map, const auto& key) {
    const auto found = map.find(key);
    if (found != map.end() && found->second == endpoint.id) map.erase(found);
  };
  erase_own(by_local_id_, endpoint.local_id);
  erase_own(by_peer_id_, PeerKey{endpoint.facts.remote, endpoint.remote_id});
  erase_own(by_request_, PeerKey{endpoint.facts.remote, endpoint.remote_id});
  erase_own(by_peer_qpn_, PeerKey{endpoint.facts.remote, endpoint.facts.remote_qpn});
  erase_own(by_qpn_, endpoint.facts.local_qpn);
  endpoint.local_id = endpoint.remote_id = 0;
  endpoint.last.reset();
  if (std::exchange(endpoint.remembered, false)) --remembered_;
  if (!endpoint.owned) forget(endpoint);
}

void Manager::forget(Endpoint& endpoint) { endpoints_.erase(endpoint.id); }

}  // namespace rnic::cm
