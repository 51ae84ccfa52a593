#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver/ndk/adapter.hpp"
#include "driver/ndk/address.hpp"
#include "driver/ndk/connection_endpoint.hpp"
#include "driver/ndk/errand.hpp"
#include "driver/ndk/queue_pair.hpp"

namespace rnic::ndk {

/// NDK_CONNECTOR: one side of a connection, by the connection manager (docs/connection_manager.md). What a call asks
/// for is done on the worker, and so is what the connection manager says; a call itself judges only whether it fits to
/// the state.
class Connector final : public ObjectOf<NDK_CONNECTOR, Connector>, private EndpointUser {
 public:
  /// NDK_FN_CREATE_CONNECTOR.
  static NTSTATUS create(NDK_ADAPTER* adapter, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                         NDK_CONNECTOR** connector);
  /// Of a request that came to `listener`, which ends after it; the endpoint that `event` names belongs to it. On the
  /// worker. Errors: those of query_endpoint, kOutOfMemory; the endpoint is then the caller's.
  static Result<Connector*> make_incoming(Adapter& adapter, Object& listener,
                                          const calls::TakeConnectionEvent::Answer& event);

  /// Its queue pair has failed by itself: the connection is ended (decisions 7). On the worker.
  void queue_pair_failed();

 private:
  enum class State : std::uint8_t {
    kIdle,           ///< Nothing was begun, or what was begun has failed and may be begun again
    kConnecting,     ///< Connect is under way
    kAnswered,       ///< The peer has accepted
    kCompleting,     ///< CompleteConnect is under way
    kIncoming,       ///< The peer has asked
    kAccepting,      ///< Accept is under way
    kRejecting,      ///< Reject is under way
    kConnected,      ///< Both sides
    kDisconnecting,  ///< Disconnect is under way
    kPeerLeft,       ///< The peer has ended the connection
    kAborted,        ///< The peer gave up before there was one
    kOver,           ///< Ended, or refused
  };
  explicit Connector(Adapter& adapter);
  static NTSTATUS connect(NDK_CONNECTOR* connector, NDK_QP* qp, const SOCKADDR* source, ULONG source_length,
                          const SOCKADDR* destination, ULONG destination_length, ULONG inbound, ULONG outbound,
                          const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static NTSTATUS connect_shared(NDK_CONNECTOR*, NDK_QP*, NDK_SHARED_ENDPOINT*, const SOCKADDR*, ULONG, ULONG, ULONG,
                                 const void*, ULONG, NDK_FN_REQUEST_COMPLETION, PVOID);
  static NTSTATUS complete_connect(NDK_CONNECTOR* connector, NDK_FN_DISCONNECT_EVENT_CALLBACK event,
                                   PVOID event_context, NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static NTSTATUS accept(NDK_CONNECTOR* connector, NDK_QP* qp, ULONG inbound, ULONG outbound, const void* data,
                         ULONG length, NDK_FN_DISCONNECT_EVENT_CALLBACK event, PVOID event_context,
                         NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static NTSTATUS reject(NDK_CONNECTOR* connector, const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion,
                         PVOID context);
  static NTSTATUS connection_data(NDK_CONNECTOR* connector, ULONG* inbound, ULONG* outbound, PVOID data, ULONG* length);
  static NTSTATUS local_address(NDK_CONNECTOR* connector, PSOCKADDR address, ULONG* length);
  static NTSTATUS peer_address(NDK_CONNECTOR* connector, PSOCKADDR address, ULONG* length);
  static NTSTATUS disconnect(NDK_CONNECTOR* connector, NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static const NDK_CONNECTOR_DISPATCH kDispatch;

  NTSTATUS move(State from, State to);
  template <typename Step>
  NTSTATUS begin(State before, State during, NDK_FN_REQUEST_COMPLETION completion, PVOID context, Step step);
  void use(QueuePair* qp);
  void start_connect();
  void go_on(const Result<void>& step);
  void start_complete();
  void start_accept();
  void start_reject();
  void start_disconnect();
  void finish_disconnect(NTSTATUS status);
  void lose(NTSTATUS status);
  void finish_request(State next, NTSTATUS status);
  void abandon();
  void on_connection_event(const calls::TakeConnectionEvent::Answer& event) override;
  void begin_close() override;
  void end() override;

  Adapter& adapter_;
  ConnectionEndpoint endpoint_;
  std::atomic<State> state_{State::kIdle};
  Errand abandon_;
  // Written by the call that has begun something, the worker's while that is under way.
  QueuePair* asked_qp_{};
  Address wanted_local_{};
  Address wanted_remote_{};
  ConnectionOffer offer_;
  NDK_FN_DISCONNECT_EVENT_CALLBACK disconnected_{};
  PVOID disconnected_context_{};
  // The worker's.
  Request request_;
  QueuePair* qp_{};
  bool peer_left_{};
  std::atomic<bool> closing_{};
};

}  // namespace rnic::ndk
