#include "driver/ndk/connector.hpp"

#include <algorithm>
#include <cstring>

namespace rnic::ndk {
namespace {

// What a message carries for the consumer, whatever of it the peer has used (annex A11; 12.6.7, 12.6.8).
constexpr ULONG kRequestData = 56, kReplyData = 196, kRejectData = 148;
constexpr std::uint8_t kRetries = 7, kRnrRetries = 6, kEndlessRnrRetries = 7;
constexpr std::uint8_t kRnrTimer = 12;  // 0.64 ms (9.7.5.2.8)
constexpr std::uint16_t kTimeoutReason = 4;

}  // namespace

const NDK_CONNECTOR_DISPATCH Connector::kDispatch{.NdkCloseConnector = close_object,
                                                  .NdkQueryExtensionInterface = query_extension,
                                                  .NdkConnect = connect,
                                                  .NdkConnectWithSharedEndpoint = connect_shared,
                                                  .NdkCompleteConnect = complete_connect,
                                                  .NdkAccept = accept,
                                                  .NdkReject = reject,
                                                  .NdkGetConnectionData = connection_data,
                                                  .NdkGetLocalAddress = local_address,
                                                  .NdkGetPeerAddress = peer_address,
                                                  .NdkDisconnect = disconnect};

NTSTATUS address_status(Error error) {
  switch (error) {
    case Error::kNotFound: return STATUS_INVALID_ADDRESS;
    case Error::kExists: return STATUS_SHARING_VIOLATION;
    case Error::kOutOfResources: return STATUS_TOO_MANY_ADDRESSES;
    default: return control_status(error);
  }
}

Connector::Connector(Adapter& adapter)
    : ObjectOf(adapter.worker(), NdkObjectTypeConnector, kDispatch),
      adapter_(adapter),
      abandon_(*this, [this] { abandon(); }) {
  need(adapter);
}

NTSTATUS Connector::create(NDK_ADAPTER* face, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_CONNECTOR**) {
  auto& adapter = Adapter::of(face);
  return pend_creation(adapter, completion, context, [&adapter](NDK_OBJECT_HEADER*& header) {
    const auto made = or_out_of_memory([&]() -> Result<void> {
      header = (new Connector(adapter))->header();
      return {};
    });
    return made ? STATUS_SUCCESS : control_status(made.error());
  });
}

Result<Connector*> Connector::make_incoming(Adapter& adapter, calls::Handle endpoint,
                                            const calls::TakeConnectionEvent::Answer& event) {
  return or_out_of_memory([&]() -> Result<Connector*> {
    const auto known = adapter.context()->call(calls::QueryEndpoint{.endpoint = endpoint});
    if (!known) return known.error();
    std::unique_ptr<Connector> made(new Connector(adapter));
    adapter.subscribe(endpoint, made.get());
    made->endpoint_ = endpoint;
    made->state_ = State::kIncoming;
    made->hear(event, kRequestData);
    const auto most = adapter.info().MaxInboundReadLimit;
    made->said_.inbound = std::min<ULONG>(most, known->initiator_depth);
    made->said_.outbound = std::min<ULONG>(most, known->responder_resources);
    made->local_ = Address::of(known->local, known->local_port);
    made->peer_ = Address::of(known->remote, known->remote_port);
    made->addresses_known_ = true;
    return made.release();
  });
}

/// STATUS_PENDING: it is in the new state. Otherwise what does not fit to the present one.
NTSTATUS Connector::move(State from, State to) {
  State present = from;
  if (state_.compare_exchange_strong(present, to)) return STATUS_PENDING;
  switch (present) {
    case State::kAborted: return STATUS_CONNECTION_ABORTED;
    case State::kConnecting:
    case State::kCompleting:
    case State::kAccepting:
    case State::kRejecting:
    case State::kDisconnecting: return STATUS_INVALID_DEVICE_STATE;
    default: return STATUS_CONNECTION_INVALID;
  }
}

/// The state has been moved to `during` from `before`; `step` begins, and whatever ends it completes the request. What
/// came between the two has changed the state again.
template <typename Step>
NTSTATUS Connector::begin(State before, State during, NDK_FN_REQUEST_COMPLETION completion, PVOID context, Step step) {
  hold();
  const Request request(*this, completion, context);
  const bool given = worker().call([this, during, request, step] {
    request_ = request;
    if (state_ == during) {
      (this->*step)();
    } else {
      finish_request(State::kOver, is_closing() ? STATUS_CANCELLED : STATUS_CONNECTION_ABORTED);
    }
  });
  if (given) return STATUS_PENDING;
  state_ = before;
  release();
  return STATUS_INSUFFICIENT_RESOURCES;
}

void Connector::say(const void* data, ULONG length) {
  own_length_ = length;
  if (length != 0) std::memcpy(own_data_.data(), data, length);
}

NTSTATUS Connector::connect(NDK_CONNECTOR* face, NDK_QP* qp, const SOCKADDR* source, ULONG source_length,
                            const SOCKADDR* destination, ULONG destination_length, ULONG inbound, ULONG outbound,
                            const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& connector = of(face);
  const auto from = Address::from(source, source_length);
  const auto to = Address::from(destination, destination_length);
  if (!from || !to) return STATUS_INVALID_ADDRESS;
  if (qp == nullptr || completion == nullptr || length > kRequestData || (data == nullptr && length != 0))
    return STATUS_INVALID_PARAMETER;
  if (const NTSTATUS moved = connector.move(State::kIdle, State::kConnecting); moved != STATUS_PENDING) return moved;
  connector.asked_qp_ = &QueuePair::of(qp);
  connector.wanted_local_ = *from;
  connector.wanted_remote_ = *to;
  connector.wanted_inbound_ = std::min(inbound, connector.adapter_.info().MaxInboundReadLimit);
  connector.wanted_outbound_ = std::min(outbound, connector.adapter_.info().MaxOutboundReadLimit);
  connector.say(data, length);
  return connector.begin(State::kIdle, State::kConnecting, completion, context, &Connector::start_connect);
}

/// No endpoint is shared (Adapter::create_shared_endpoint).
NTSTATUS Connector::connect_shared(NDK_CONNECTOR*, NDK_QP*, NDK_SHARED_ENDPOINT*, const SOCKADDR*, ULONG, ULONG, ULONG,
                                   const void*, ULONG, NDK_FN_REQUEST_COMPLETION, PVOID) {
  return STATUS_NOT_SUPPORTED;
}

/// The queue pair lives as long as the connector that has it.
void Connector::use(QueuePair* qp) {
  if (qp_ == qp) return;
  if (qp != nullptr) {
    qp->hold();
    qp->attach(this);
  }
  if (qp_ != nullptr) {
    qp_->attach(nullptr);
    qp_->release();
  }
  qp_ = qp;
}

void Connector::start_connect() {
  auto& context = *adapter_.context();
  use(asked_qp_);
  const auto fail = [this](NTSTATUS status) {
    drop_endpoint();
    use(nullptr);
    finish_request(State::kIdle, status);
  };
  const auto made = context.call(calls::CreateEndpoint{.channel = adapter_.channel(), .port_space = kConnectionPorts});
  if (!made) return fail(control_status(made.error()));
  endpoint_ = made->endpoint;
  const auto known = or_out_of_memory([&]() -> Result<void> {
    adapter_.subscribe(endpoint_, this);
    return {};
  });
  if (!known) return fail(control_status(known.error()));
  const auto bound = context.call(
      calls::BindEndpoint{.address = wanted_local_.gid, .endpoint = endpoint_, .port = wanted_local_.port});
  if (!bound) return fail(address_status(bound.error()));
  const auto resolved = context.call(calls::ResolveAddress{.local = wanted_local_.gid,
                                                           .remote = wanted_remote_.gid,
                                                           .endpoint = endpoint_,
                                                           .remote_port = wanted_remote_.port});
  // The port has no address that leads there.
  if (!resolved) {
    const bool strange = resolved.error() == Error::kNotFound || resolved.error() == Error::kInvalidParameter;
    return fail(strange ? STATUS_NETWORK_UNREACHABLE : control_status(resolved.error()));
  }
  const std::lock_guard lock(lock_);
  local_ = Address::of(resolved->local, bound->port);
  peer_ = Address::of(wanted_remote_.gid, wanted_remote_.port);
  addresses_known_ = true;
}

calls::ConnectionTerms Connector::terms() const {
  return {.qp = qp_->core()->kernel_qp().handle(),
          .receive_psn = receive_psn_,
          .responder_resources = static_cast<std::uint8_t>(wanted_inbound_),
          .initiator_depth = static_cast<std::uint8_t>(wanted_outbound_),
          .retry_count = kRetries,
          .rnr_retry = qp_->has_srq() ? kEndlessRnrRetries : kRnrRetries,
          .flow_control = true,
          .srq = qp_->has_srq()};
}

void Connector::ask_peer() {
  receive_psn_ = adapter_.kernel().random_psn();
  calls::Connect ask{.terms = terms(), .endpoint = endpoint_, .data_length = static_cast<std::uint8_t>(own_length_)};
  std::copy_n(own_data_.begin(), own_length_, ask.data.begin());
  if (const auto done = adapter_.context()->call(ask); !done) lose(control_status(done.error()));
}

void Connector::hear(const calls::TakeConnectionEvent::Answer& event, ULONG length) {
  const std::lock_guard lock(lock_);
  said_.length = length;
  said_.data = {};
  std::copy_n(event.data.begin(), std::min<ULONG>(event.data_length, length), said_.data.begin());
}

void Connector::answered(const calls::TakeConnectionEvent::Answer& event) {
  const auto known = adapter_.context()->call(calls::QueryEndpoint{.endpoint = endpoint_});
  if (!known) return lose(control_status(known.error()));
  hear(event, kReplyData);
  wanted_inbound_ = std::min<ULONG>(wanted_inbound_, known->initiator_depth);
  wanted_outbound_ = std::min<ULONG>(wanted_outbound_, known->responder_resources);
  {
    const std::lock_guard lock(lock_);
    said_.inbound = wanted_inbound_;
    said_.outbound = wanted_outbound_;
  }
  finish_request(State::kAnswered, STATUS_SUCCESS);
}

Result<void> Connector::make_ready() {
  const auto known = adapter_.context()->call(calls::QueryEndpoint{.endpoint = endpoint_});
  if (!known) return known.error();
  umd::QpConnection connection;
  connection.path.sgid_index = known->sgid_index;
  connection.path.dest_gid = known->remote;
  connection.path.dest_mac = known->remote_mac;
  connection.path.traffic_class = known->traffic_class;
  connection.path.hop_limit = std::max<std::uint8_t>(known->hop_limit, 1);
  connection.path.flow_label = known->flow_label;
  connection.path.pkey_index = known->pkey_index;
  connection.dest_qpn = known->remote_qpn;
  connection.send_psn = known->send_psn;
  connection.receive_psn = receive_psn_;
  connection.path_mtu = known->path_mtu;
  connection.inbound_reads = static_cast<std::uint8_t>(wanted_inbound_);
  connection.outbound_reads = static_cast<std::uint8_t>(wanted_outbound_);
  connection.min_rnr_timer = kRnrTimer;
  connection.ack_timeout = known->ack_timeout;
  connection.retry_count = known->retry_count;
  connection.rnr_retry = known->rnr_retry;
  connection.remote_atomic = false;
  return qp_->core()->connect(connection);
}

NTSTATUS Connector::complete_connect(NDK_CONNECTOR* face, NDK_FN_DISCONNECT_EVENT_CALLBACK event, PVOID event_context,
                                     NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& connector = of(face);
  if (completion == nullptr) return STATUS_INVALID_PARAMETER;
  if (const NTSTATUS moved = connector.move(State::kAnswered, State::kCompleting); moved != STATUS_PENDING)
    return moved;
  connector.disconnected_ = event;
  connector.disconnected_context_ = event_context;
  return connector.begin(State::kAnswered, State::kCompleting, completion, context, &Connector::start_complete);
}

void Connector::start_complete() {
  if (const auto ready = make_ready(); !ready) {
    // The queue pair is not what it was when Connect was called.
    return lose(ready.error() == Error::kInvalidState ? STATUS_CONNECTION_INVALID : control_status(ready.error()));
  }
  const auto done = adapter_.context()->call(calls::Establish{.endpoint = endpoint_});
  if (!done)
    return lose(done.error() == Error::kInvalidState ? STATUS_CONNECTION_ABORTED : control_status(done.error()));
  finish_request(State::kConnected, STATUS_SUCCESS);
}

NTSTATUS Connector::accept(NDK_CONNECTOR* face, NDK_QP* qp, ULONG inbound, ULONG outbound, const void* data,
                           ULONG length, NDK_FN_DISCONNECT_EVENT_CALLBACK event, PVOID event_context,
                           NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& connector = of(face);
  if (qp == nullptr || completion == nullptr || length > connector.adapter_.info().MaxCalleeData ||
      (data == nullptr && length != 0)) {
    return STATUS_INVALID_PARAMETER;
  }
  if (const NTSTATUS moved = connector.move(State::kIncoming, State::kAccepting); moved != STATUS_PENDING) return moved;
  connector.asked_qp_ = &QueuePair::of(qp);
  connector.wanted_inbound_ = std::min(inbound, connector.said_.inbound);
  connector.wanted_outbound_ = std::min(outbound, connector.said_.outbound);
  connector.disconnected_ = event;
  connector.disconnected_context_ = event_context;
  connector.say(data, length);
  return connector.begin(State::kIncoming, State::kAccepting, completion, context, &Connector::start_accept);
}

/// The queue pair serves its peer before the peer knows.
void Connector::start_accept() {
  use(asked_qp_);
  receive_psn_ = adapter_.kernel().random_psn();
  if (const auto ready = make_ready(); !ready)
    return lose(ready.error() == Error::kInvalidState ? STATUS_CONNECTION_INVALID : control_status(ready.error()));
  calls::Accept answer{.terms = terms(), .endpoint = endpoint_, .data_length = static_cast<std::uint8_t>(own_length_)};
  std::copy_n(own_data_.begin(), own_length_, answer.data.begin());
  const auto done = adapter_.context()->call(answer);
  if (!done) lose(done.error() == Error::kInvalidState ? STATUS_CONNECTION_ABORTED : control_status(done.error()));
}

NTSTATUS Connector::reject(NDK_CONNECTOR* face, const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion,
                           PVOID context) {
  auto& connector = of(face);
  if (completion == nullptr || length > kRejectData || (data == nullptr && length != 0))
    return STATUS_INVALID_PARAMETER;
  // The peer's request, or its answer to one of the own.
  State before = State::kIncoming;
  NTSTATUS moved = connector.move(before, State::kRejecting);
  if (moved == STATUS_CONNECTION_INVALID) moved = connector.move(before = State::kAnswered, State::kRejecting);
  if (moved != STATUS_PENDING) return moved;
  connector.say(data, length);
  return connector.begin(before, State::kRejecting, completion, context, &Connector::start_reject);
}

void Connector::start_reject() {
  calls::Reject answer{.endpoint = endpoint_, .data_length = static_cast<std::uint8_t>(own_length_)};
  std::copy_n(own_data_.begin(), own_length_, answer.data.begin());
  const auto done = adapter_.context()->call(answer);
  use(nullptr);
  if (done) return finish_request(State::kOver, STATUS_SUCCESS);
  lose(done.error() == Error::kInvalidState ? STATUS_CONNECTION_ABORTED : control_status(done.error()));
}

NTSTATUS Connector::disconnect(NDK_CONNECTOR* face, NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& connector = of(face);
  if (completion == nullptr) return STATUS_INVALID_PARAMETER;
  // After the peer's it has only the queue pair to flush (decisions 10).
  State before = State::kConnected;
  NTSTATUS moved = connector.move(before, State::kDisconnecting);
  if (moved == STATUS_CONNECTION_INVALID) moved = connector.move(before = State::kPeerLeft, State::kDisconnecting);
  if (moved != STATUS_PENDING) return moved;
  return connector.begin(before, State::kDisconnecting, completion, context, &Connector::start_disconnect);
}

void Connector::start_disconnect() {
  qp_->refuse_requests();
  // The peer may have been first.
  if (peer_left_ || !adapter_.context()->call(calls::Disconnect{.endpoint = endpoint_}))
    finish_disconnect(STATUS_SUCCESS);
}

void Connector::finish_disconnect(NTSTATUS status) {
  static_cast<void>(qp_->core()->flush().ok());
  finish_request(State::kOver, status);
}

void Connector::queue_pair_failed() {
  if (state_ != State::kConnected) return;
  // What follows is told as the peer's end of the connection.
  static_cast<void>(adapter_.context()->call(calls::Disconnect{.endpoint = endpoint_}).ok());
}

void Connector::on_connection_event(const calls::TakeConnectionEvent::Answer& event) {
  using calls::ConnectionEvent;
  const State state = state_;
  switch (static_cast<ConnectionEvent>(event.type)) {
    case ConnectionEvent::kAddressResolved:
      if (const auto done = adapter_.context()->call(calls::ResolveRoute{.endpoint = endpoint_}); !done)
        lose(control_status(done.error()));
      break;
    case ConnectionEvent::kRouteResolved: ask_peer(); break;
    case ConnectionEvent::kAddressError: lose(STATUS_HOST_UNREACHABLE); break;
    case ConnectionEvent::kConnectResponse: answered(event); break;
    case ConnectionEvent::kEstablished:
      if (state == State::kAccepting) finish_request(State::kConnected, STATUS_SUCCESS);
      break;
    case ConnectionEvent::kRejected:
      if (state == State::kConnecting) hear(event, kRejectData);
      lose(state == State::kConnecting ? STATUS_CONNECTION_REFUSED : STATUS_CONNECTION_ABORTED);
      break;
    case ConnectionEvent::kUnreachable: lose(STATUS_IO_TIMEOUT); break;
    case ConnectionEvent::kDisconnected:
      peer_left_ = true;
      if (state == State::kDisconnecting && request_) {
        finish_disconnect(event.reason == kTimeoutReason ? STATUS_IO_TIMEOUT : STATUS_SUCCESS);
      } else {
        lose(STATUS_CONNECTION_ABORTED);
      }
      break;
    case ConnectionEvent::kDeviceRemoved: lose(STATUS_DEVICE_REMOVED); break;
    default: break;
  }
}

/// The connection, or what would have become one, is over, and not by a wish of the consumer.
void Connector::lose(NTSTATUS status) {
  const State state = state_;
  const bool beginning = !request_ && (state == State::kCompleting || state == State::kAccepting ||
                                       state == State::kRejecting || state == State::kDisconnecting);
  if (beginning) {
    // Its step has yet to run, and finds out: who disconnects has what he wants.
    if (state != State::kDisconnecting) state_ = State::kAborted;
    return;
  }
  switch (state) {
    case State::kConnecting:
      drop_endpoint();
      use(nullptr);
      finish_request(State::kIdle, status);
      break;
    case State::kCompleting:
    case State::kAccepting:
      static_cast<void>(qp_->core()->flush().ok());
      finish_request(State::kOver, status);
      break;
    case State::kRejecting: finish_request(State::kOver, status); break;
    case State::kDisconnecting: finish_disconnect(status == STATUS_CONNECTION_ABORTED ? STATUS_SUCCESS : status); break;
    case State::kConnected: {
      static_cast<void>(qp_->core()->flush().ok());
      State connected = State::kConnected;
      state_.compare_exchange_strong(connected, State::kPeerLeft);
      if (disconnected_ != nullptr && !is_closing()) disconnected_(disconnected_context_);
      break;
    }
    case State::kIncoming:
    case State::kAnswered: {
      // Whoever has begun something since finds out by itself.
      State before = state;
      state_.compare_exchange_strong(before, State::kAborted);
      break;
    }
    default: break;
  }
}

/// The next request may be begun before this one has been told.
void Connector::finish_request(State next, NTSTATUS status) {
  Request ended = std::exchange(request_, {});
  state_ = next;
  ended.complete(status);
}

bool Connector::is_closing() {
  const std::lock_guard lock(lock_);
  return closing_;
}

void Connector::begin_close() {
  {
    const std::lock_guard lock(lock_);
    closing_ = true;
  }
  abandon_.ask();
}

/// The consumer has closed it: what is under way is cancelled, and the peer is told by the endpoint's end.
void Connector::abandon() {
  drop_endpoint();
  if (qp_ != nullptr && state_ != State::kConnecting && state_ != State::kOver) {
    qp_->refuse_requests();
    static_cast<void>(qp_->core()->flush().ok());
  }
  use(nullptr);
  state_ = State::kOver;
  if (request_) finish_request(State::kOver, STATUS_CANCELLED);
}

void Connector::drop_endpoint() {
  if (endpoint_ == 0) return;
  adapter_.subscribe(endpoint_, nullptr);
  static_cast<void>(
      adapter_.context()
          ->call(calls::Destroy{.object = endpoint_, .kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint)})
          .ok());
  endpoint_ = 0;
}

void Connector::end() {
  drop_endpoint();
  use(nullptr);
}

NTSTATUS Connector::connection_data(NDK_CONNECTOR* face, ULONG* inbound, ULONG* outbound, PVOID data, ULONG* length) {
  auto& connector = of(face);
  if (length == nullptr || (data == nullptr && *length != 0)) return STATUS_INVALID_PARAMETER;
  const std::lock_guard lock(connector.lock_);
  const Said& said = connector.said_;
  // Nobody has said anything.
  if (said.length == 0) return STATUS_CONNECTION_INVALID;
  if (inbound != nullptr) *inbound = said.inbound;
  if (outbound != nullptr) *outbound = said.outbound;
  const ULONG room = *length;
  *length = said.length;
  if (data == nullptr) return STATUS_SUCCESS;
  std::copy_n(said.data.begin(), std::min(room, said.length), static_cast<std::uint8_t*>(data));
  return room < said.length ? STATUS_BUFFER_TOO_SMALL : STATUS_SUCCESS;
}

NTSTATUS Connector::local_address(NDK_CONNECTOR* face, PSOCKADDR address, ULONG* length) {
  auto& connector = of(face);
  const std::lock_guard lock(connector.lock_);
  return connector.addresses_known_ ? connector.local_.copy_to(address, length) : STATUS_CONNECTION_INVALID;
}

NTSTATUS Connector::peer_address(NDK_CONNECTOR* face, PSOCKADDR address, ULONG* length) {
  auto& connector = of(face);
  const std::lock_guard lock(connector.lock_);
  return connector.addresses_known_ ? connector.peer_.copy_to(address, length) : STATUS_CONNECTION_INVALID;
}

}  // namespace rnic::ndk
