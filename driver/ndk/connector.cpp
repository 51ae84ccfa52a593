#include "driver/ndk/connector.hpp"

#include <algorithm>

namespace rnic::ndk {
namespace {

constexpr std::uint16_t kTimeoutReason = 4;

/// Of a queue pair that does not get ready.
NTSTATUS ready_status(Error error) {
  // It is not what it was when the connection was begun.
  return error == Error::kInvalidState ? STATUS_CONNECTION_INVALID : control_status(error);
}

/// Of an answer to the peer.
NTSTATUS answer_status(Error error) {
  return error == Error::kInvalidState ? STATUS_CONNECTION_ABORTED : control_status(error);
}

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

Connector::Connector(Adapter& adapter)
    : ObjectOf(adapter.worker(), NdkObjectTypeConnector, kDispatch),
      adapter_(adapter),
      endpoint_(adapter, *this),
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

Result<Connector*> Connector::make_incoming(Adapter& adapter, Object& listener,
                                            const calls::TakeConnectionEvent::Answer& event) {
  return or_out_of_memory([&]() -> Result<Connector*> {
    std::unique_ptr<Connector> made(new Connector(adapter));
    if (auto taken = made->endpoint_.take_over(event.incoming, event); !taken) return taken.error();
    made->need(listener);
    made->state_ = State::kIncoming;
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
      finish_request(State::kOver, closing_ ? STATUS_CANCELLED : STATUS_CONNECTION_ABORTED);
    }
  });
  if (given) return STATUS_PENDING;
  state_ = before;
  release();
  return STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS Connector::connect(NDK_CONNECTOR* face, NDK_QP* qp, const SOCKADDR* source, ULONG source_length,
                            const SOCKADDR* destination, ULONG destination_length, ULONG inbound, ULONG outbound,
                            const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& connector = of(face);
  const auto from = Address::from(source, source_length);
  const auto to = Address::from(destination, destination_length);
  if (!from || !to) return STATUS_INVALID_ADDRESS;
  if (qp == nullptr || completion == nullptr || length > ConnectionEndpoint::kRequestData ||
      (data == nullptr && length != 0))
    return STATUS_INVALID_PARAMETER;
  if (const NTSTATUS moved = connector.move(State::kIdle, State::kConnecting); moved != STATUS_PENDING) return moved;
  connector.asked_qp_ = &QueuePair::of(qp);
  connector.wanted_local_ = *from;
  connector.wanted_remote_ = *to;
  const NDK_ADAPTER_INFO& info = connector.adapter_.info();
  connector.offer_.set(std::min(inbound, info.MaxInboundReadLimit), std::min(outbound, info.MaxOutboundReadLimit), data,
                       length);
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
  use(asked_qp_);
  const NTSTATUS begun = endpoint_.open(wanted_local_, wanted_remote_);
  if (begun != STATUS_SUCCESS) lose(begun);
}

/// What was asked for goes on by an event, if nothing was in its way.
void Connector::go_on(const Result<void>& step) {
  if (!step) lose(control_status(step.error()));
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
  if (const auto ready = endpoint_.make_ready(*qp_, offer_); !ready) return lose(ready_status(ready.error()));
  if (const auto done = endpoint_.establish(); !done) return lose(answer_status(done.error()));
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
  const auto [most_inbound, most_outbound] = connector.endpoint_.offered_limits();
  connector.offer_.set(std::min(inbound, most_inbound), std::min(outbound, most_outbound), data, length);
  connector.disconnected_ = event;
  connector.disconnected_context_ = event_context;
  return connector.begin(State::kIncoming, State::kAccepting, completion, context, &Connector::start_accept);
}

/// The queue pair serves its peer before the peer knows.
void Connector::start_accept() {
  use(asked_qp_);
  endpoint_.prepare_accept(offer_);
  if (const auto ready = endpoint_.make_ready(*qp_, offer_); !ready) return lose(ready_status(ready.error()));
  if (const auto done = endpoint_.accept(*qp_, offer_); !done) lose(answer_status(done.error()));
}

NTSTATUS Connector::reject(NDK_CONNECTOR* face, const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion,
                           PVOID context) {
  auto& connector = of(face);
  if (completion == nullptr || length > ConnectionEndpoint::kRejectData || (data == nullptr && length != 0))
    return STATUS_INVALID_PARAMETER;
  // The peer's request, or its answer to one of the own.
  State before = State::kIncoming;
  NTSTATUS moved = connector.move(before, State::kRejecting);
  if (moved == STATUS_CONNECTION_INVALID) moved = connector.move(before = State::kAnswered, State::kRejecting);
  if (moved != STATUS_PENDING) return moved;
  connector.offer_.set(0, 0, data, length);
  return connector.begin(before, State::kRejecting, completion, context, &Connector::start_reject);
}

void Connector::start_reject() {
  const auto done = endpoint_.reject(offer_);
  use(nullptr);
  if (done) return finish_request(State::kOver, STATUS_SUCCESS);
  lose(answer_status(done.error()));
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
  if (peer_left_ || !endpoint_.disconnect()) finish_disconnect(STATUS_SUCCESS);
}

void Connector::finish_disconnect(NTSTATUS status) {
  static_cast<void>(qp_->core()->flush().ok());
  finish_request(State::kOver, status);
}

void Connector::queue_pair_failed() {
  if (state_ != State::kConnected) return;
  // What follows is told as the peer's end of the connection.
  static_cast<void>(endpoint_.disconnect().ok());
}

void Connector::on_connection_event(const calls::TakeConnectionEvent::Answer& event) {
  using calls::ConnectionEvent;
  const State state = state_;
  switch (static_cast<ConnectionEvent>(event.type)) {
    case ConnectionEvent::kAddressResolved: go_on(endpoint_.resolve_route()); break;
    case ConnectionEvent::kRouteResolved: go_on(endpoint_.ask(*qp_, offer_)); break;
    case ConnectionEvent::kAddressError: lose(STATUS_HOST_UNREACHABLE); break;
    case ConnectionEvent::kConnectResponse:
      if (const auto heard = endpoint_.hear_answer(event, offer_); !heard) {
        lose(control_status(heard.error()));
      } else {
        finish_request(State::kAnswered, STATUS_SUCCESS);
      }
      break;
    case ConnectionEvent::kEstablished:
      if (state == State::kAccepting) finish_request(State::kConnected, STATUS_SUCCESS);
      break;
    case ConnectionEvent::kRejected:
      if (state == State::kConnecting) endpoint_.hear_refusal(event);
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
      endpoint_.drop();
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
      if (disconnected_ != nullptr && !closing_) disconnected_(disconnected_context_);
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

void Connector::begin_close() {
  closing_ = true;
  abandon_.ask();
}

/// The consumer has closed it: what is under way is cancelled, and the peer is told by the endpoint's end.
void Connector::abandon() {
  endpoint_.drop();
  if (qp_ != nullptr && state_ != State::kConnecting && state_ != State::kOver) {
    qp_->refuse_requests();
    static_cast<void>(qp_->core()->flush().ok());
  }
  use(nullptr);
  state_ = State::kOver;
  if (request_) finish_request(State::kOver, STATUS_CANCELLED);
}

void Connector::end() {
  endpoint_.drop();
  use(nullptr);
}

NTSTATUS Connector::connection_data(NDK_CONNECTOR* face, ULONG* inbound, ULONG* outbound, PVOID data, ULONG* length) {
  return of(face).endpoint_.connection_data(inbound, outbound, data, length);
}

NTSTATUS Connector::local_address(NDK_CONNECTOR* face, PSOCKADDR address, ULONG* length) {
  return of(face).endpoint_.local_address(address, length);
}

NTSTATUS Connector::peer_address(NDK_CONNECTOR* face, PSOCKADDR address, ULONG* length) {
  return of(face).endpoint_.peer_address(address, length);
}

}  // namespace rnic::ndk
