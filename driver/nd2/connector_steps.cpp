// What becomes of a connector when the kernel driver has something to say of its connection.
#include <algorithm>

#include "driver/nd2/bind_status.hpp"
#include "driver/nd2/connector.hpp"
#include "driver/nd2/status.hpp"

namespace rnic::nd2 {
namespace {

using calls::ConnectionEvent;

constexpr std::uint8_t kRetries = 7;
// How often a Send to a peer without a posted Receive is repeated (decisions 13): for ever if it takes them from a
// shared queue. The time between is the receiver's to say (InfiniBand specification 9.7.5.2.8).
constexpr std::uint8_t kRnrRetries = 6, kRnrForEver = 7;
constexpr std::uint8_t kRnrTimer = 18, kRnrTimerShared = 12;  // 5.12 and 0.64 ms
constexpr std::uint16_t kTimedOut = 4;                        // reason of a REJ (12.6.7.2)

/// Sequence numbers of which no earlier connection's packets make sense (InfiniBand specification 12.9.8.3.1): from the
/// moment and the queue pair, so that a run that is repeated is the same.
std::uint32_t draw_psn(std::uint64_t now_ns, std::uint32_t qpn) {
  std::uint64_t mixed = now_ns * 0x9E3779B97F4A7C15 + qpn;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return static_cast<std::uint32_t>(mixed >> 40);
}

HRESULT refusal_status(std::uint16_t reason) { return reason == kTimedOut ? ND_IO_TIMEOUT : ND_CONNECTION_REFUSED; }

}  // namespace

HRESULT Connector::open_endpoint() {
  if (endpoint_ != nullptr) return ND_SUCCESS;
  auto made = umd::KernelEndpoint::create(*process_);
  if (!made) return made.error() == Error::kNotSupported ? ND_DEVICE_NOT_READY : control_status(made.error());
  own_endpoint(made.take());
  return ND_SUCCESS;
}

void Connector::own_endpoint(std::unique_ptr<umd::KernelEndpoint> endpoint) {
  process_->events().subscribe(EventTable::Of::kEndpoint, endpoint->handle(), shared_from_this());
  endpoint_ = std::move(endpoint);
  process_->expect_events(true);
}

void Connector::close_endpoint() {
  bound_ = false;
  local_ = {};
  if (endpoint_ == nullptr) return;
  process_->events().unsubscribe(EventTable::Of::kEndpoint, endpoint_->handle());
  process_->expect_events(false);
  endpoint_.reset();
}

/// Own address and station that lead to a peer.
HRESULT Connector::resolve(const SocketAddress& wanted) {
  SocketAddress to = wanted;
  if (const auto found = resolve_loopback(*process_, to); !found)
    return found.error() == Error::kNotFound ? ND_NETWORK_UNREACHABLE : control_status(found.error());
  if (const HRESULT status = open_endpoint(); status != ND_SUCCESS) return status;
  const auto resolved =
      process_->call(calls::ResolveAddress{.remote = to.gid, .endpoint = endpoint_->handle(), .remote_port = to.port});
  if (!resolved) {
    if (resolved.error() == Error::kNotFound) return ND_NETWORK_UNREACHABLE;
    return resolved.error() == Error::kInvalidParameter ? ND_INVALID_ADDRESS : bind_status(resolved.error(), 0);
  }
  bool found = false;
  for (;;) {
    const auto event = process_->call(calls::TakeConnectionEvent{.endpoint = endpoint_->handle()});
    if (!event) return control_status(event.error());
    const auto type = static_cast<ConnectionEvent>(event->type);
    if (type == ConnectionEvent::kNone) break;
    // What an attempt before this one has left is of no meaning any more.
    if (type == ConnectionEvent::kAddressResolved || type == ConnectionEvent::kAddressError)
      found = type == ConnectionEvent::kAddressResolved;
  }
  if (!found) return ND_HOST_UNREACHABLE;
  const auto known = process_->call(calls::QueryEndpoint{.endpoint = endpoint_->handle()});
  if (!known) return control_status(known.error());
  local_ = address_of(known->local, known->local_port);
  return ND_SUCCESS;
}

HRESULT Connector::claim(const std::shared_ptr<QueuePair>& pair) {
  if (pair->core()->state() != umd::QueuePair::State::kIdle || !pair->claim(shared_from_this()))
    return ND_CONNECTION_ACTIVE;
  pair_ = pair;
  Claimed claimed(*this);
  psn_ = draw_psn(process_->machine().now_ns(), pair->core()->qpn());
  process_->events().subscribe(EventTable::Of::kConnection, pair->core()->qpn(), shared_from_this());
  claimed.keep();
  return ND_SUCCESS;
}

void Connector::give_up_pair() {
  if (pair_ == nullptr) return;
  process_->events().unsubscribe(EventTable::Of::kConnection, pair_->core()->qpn());
  pair_->let_go(*this);
  pair_.reset();
}

/// Limits of Reads: who accepts knows what the peer does; who asks says what it would like.
calls::ConnectionTerms Connector::terms() const {
  ULONG inbound = std::min<ULONG>(wish_.inbound, process_->limits().max_rd_atomic);
  ULONG outbound = std::min<ULONG>(wish_.outbound, process_->limits().max_rd_atomic);
  if (!active_) {
    inbound = std::min<ULONG>(inbound, known_.initiator_depth);
    outbound = std::min<ULONG>(outbound, known_.responder_resources);
  }
  const bool shared = pair_->core()->shares_receives();
  return {.qp = pair_->core()->kernel_qp().handle(),
          .receive_psn = psn_,
          .responder_resources = static_cast<std::uint8_t>(inbound),
          .initiator_depth = static_cast<std::uint8_t>(outbound),
          .retry_count = kRetries,
          .rnr_retry = shared ? kRnrForEver : kRnrRetries,
          .flow_control = true,
          .srq = shared};
}

/// The queue pair goes to RTR and RTS.
Result<void> Connector::make_ready() {
  const ULONG most = process_->limits().max_rd_atomic;
  umd::QpConnection connection;
  connection.path = {.sgid_index = known_.sgid_index,
                     .dest_gid = known_.remote,
                     .dest_mac = known_.remote_mac,
                     .traffic_class = known_.traffic_class,
                     .hop_limit = std::max<std::uint8_t>(known_.hop_limit, 1),
                     .flow_label = known_.flow_label,
                     .pkey_index = known_.pkey_index};
  connection.dest_qpn = known_.remote_qpn;
  connection.send_psn = known_.send_psn;
  connection.receive_psn = psn_;
  connection.path_mtu = known_.path_mtu;
  connection.inbound_reads = static_cast<std::uint8_t>(std::min<ULONG>({wish_.inbound, known_.initiator_depth, most}));
  connection.outbound_reads =
      static_cast<std::uint8_t>(std::min<ULONG>({wish_.outbound, known_.responder_resources, most}));
  connection.min_rnr_timer = pair_->core()->shares_receives() ? kRnrTimerShared : kRnrTimer;
  connection.ack_timeout = known_.ack_timeout;
  connection.retry_count = known_.retry_count;
  connection.rnr_retry = known_.rnr_retry;
  connection.remote_atomic = false;
  return pair_->core()->connect(connection);
}

/// What the peer has said of itself.
Result<void> Connector::learn() {
  const auto known = process_->call(calls::QueryEndpoint{.endpoint = endpoint_->handle()});
  if (!known) return known.error();
  known_ = *known;
  peer_known_ = true;
  local_ = address_of(known->local, known->local_port);
  return {};
}

/// What an application may send is not more than kMaxCalleeData; what is behind it is padding, unless another face of
/// the connection manager is the peer.
void Connector::keep_data(std::span<const std::uint8_t> data) {
  std::copy(data.begin(), data.end(), data_.begin());
  const bool padded = data.size() > kMaxCalleeData && std::all_of(data.begin() + kMaxCalleeData, data.end(),
                                                                  [](std::uint8_t byte) { return byte == 0; });
  data_length_ = static_cast<std::uint8_t>(padded ? kMaxCalleeData : data.size());
  data_known_ = true;
}

void Connector::work() {
  static_cast<void>(guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (guard) catch_up();
    return ND_SUCCESS;
  }));
}

void Connector::catch_up() {
  while (endpoint_ != nullptr) {
    const auto event = process_->call(calls::TakeConnectionEvent{.endpoint = endpoint_->handle()});
    if (!event || static_cast<ConnectionEvent>(event->type) == ConnectionEvent::kNone) break;
    take(*event);
  }
  if (broken_.exchange(false)) end_connection();
}

void Connector::take(const calls::TakeConnectionEvent::Answer& event) {
  const std::span data(event.data.data(), event.data_length);
  switch (static_cast<ConnectionEvent>(event.type)) {
    case ConnectionEvent::kConnectResponse: {
      if (state_ != State::kConnecting) return;
      keep_data(data);
      if (auto learned = learn(); !learned) {
        fail();
        return finish(Request::kConnect, control_status(learned.error()));
      }
      state_ = State::kResponded;
      return finish(Request::kConnect, ND_SUCCESS);
    }
    case ConnectionEvent::kEstablished:
      if (state_ != State::kAccepting) return;
      state_ = State::kConnected;
      return finish(Request::kAccept, ND_SUCCESS);
    case ConnectionEvent::kRejected:
      if (state_ == State::kConnecting) keep_data(data);
      return take_rejection(event.reason, true);
    case ConnectionEvent::kUnreachable: return take_rejection(kTimedOut, false);
    case ConnectionEvent::kDisconnected: return take_end();
    case ConnectionEvent::kDeviceRemoved: return lose_device();
    default: return;
  }
}

/// Refused, abandoned, or no answer: the connection has not come to be.
void Connector::take_rejection(std::uint16_t reason, bool answered) {
  switch (state_) {
    case State::kConnecting:
      // The connector may try again.
      give_up_pair();
      state_ = State::kIdle;
      return finish(Request::kConnect, refusal_status(reason));
    case State::kResponded:
      give_up_pair();
      late_status_ = reason == kTimedOut ? ND_IO_TIMEOUT : ND_CONNECTION_INVALID;
      state_ = State::kFailed;
      return;
    case State::kRequested: state_ = State::kAbandoned; return;
    case State::kAccepting:
      // However the peer has given up: it has refused what it was offered (decisions 35).
      static_cast<void>(pair_->core()->end().ok());
      fail();
      return finish(Request::kAccept, answered ? ND_CONNECTION_REFUSED : ND_IO_TIMEOUT);
    default: return;
  }
}

/// Both sides are flushed (decisions 10).
void Connector::take_end() {
  if (state_ == State::kAccepting) {
    static_cast<void>(pair_->core()->flush().ok());
    fail();
    return finish(Request::kAccept, ND_CONNECTION_ABORTED);
  }
  if (state_ != State::kConnected && state_ != State::kDisconnecting) return;
  if (state_ == State::kConnected) static_cast<void>(pair_->core()->flush().ok());
  state_ = State::kDisconnected;
  finish_all(ND_SUCCESS);
}

void Connector::lose_device() {
  state_ = State::kFailed;
  late_status_ = ND_DEVICE_REMOVED;
  finish_all(ND_DEVICE_REMOVED);
}

/// Tells the peer. The queue pair is flushed, by itself or here.
void Connector::end_connection() {
  switch (state_) {
    case State::kConnected:
      if (!asked_to_end_) static_cast<void>(pair_->core()->flush().ok());
      state_ = State::kDisconnecting;
      if (!process_->call(calls::Disconnect{.endpoint = endpoint_->handle()})) {
        // It is over already, and the event is not there, because nobody is told twice.
        state_ = State::kDisconnected;
        finish_all(ND_SUCCESS);
      }
      return;
    case State::kAccepting: fail(); return finish(Request::kAccept, ND_CONNECTION_ABORTED);
    case State::kResponded: return fail();
    default: return;
  }
}

/// Nothing can become of it any more. The kernel driver tells the peer whatever it has to know.
void Connector::fail() {
  const bool used = state_ == State::kAccepting || state_ == State::kConnected || state_ == State::kDisconnecting;
  if (used && pair_ != nullptr) static_cast<void>(pair_->core()->flush().ok());
  state_ = State::kFailed;
  give_up_pair();
  close_endpoint();
}

HRESULT Connector::state_error() const { return state_ == State::kFailed ? late_status_ : ND_CONNECTION_INVALID; }

}  // namespace rnic::nd2
