#pragma once

#include <array>
#include <cstdint>

#include "driver/ndk/adapter.hpp"
#include "driver/ndk/address.hpp"
#include "driver/ndk/queue_pair.hpp"

namespace rnic::ndk {

/// What the consumer of one side of a connection says to that of the other: data, and how many Reads it wants in each
/// direction.
struct ConnectionOffer {
  void set(ULONG inbound_reads, ULONG outbound_reads, const void* bytes, ULONG count);

  ULONG inbound{};
  ULONG outbound{};
  std::array<std::uint8_t, 224> data{};
  ULONG length{};
};

/// The endpoint of the connection manager that a connector has (docs/connection_manager.md), and what has been heard by
/// it of the peer. Functions are for the worker, and let time pass, but where another is said.
class ConnectionEndpoint {
 public:
  /// Bytes that a message carries for the consumer, whatever of them the peer has used (annex A11; 12.6.7, 12.6.8).
  static constexpr ULONG kRequestData = 56, kReplyData = 196, kRejectData = 148;

  /// Events go to `user`. Both outlive it.
  ConnectionEndpoint(Adapter& adapter, EndpointUser& user) : adapter_(adapter), user_(user) {}
  ConnectionEndpoint(const ConnectionEndpoint&) = delete;
  ConnectionEndpoint& operator=(const ConnectionEndpoint&) = delete;

  /// Has one from now on, of its own: from `local`, whose port may be 0, to `remote`. STATUS_SUCCESS: an event
  /// (kAddressResolved, kAddressError) follows. Otherwise as NDK_FN_CONNECT says, and there is none.
  [[nodiscard]] NTSTATUS open(const Address& local, const Address& remote);
  /// Has this one from now on, which a listener got by `event`. Errors: those of query_endpoint, kOutOfMemory; it
  /// stays the caller's.
  [[nodiscard]] Result<void> take_over(calls::Handle endpoint, const calls::TakeConnectionEvent::Answer& event);
  /// Has none any more; a peer that waits is told.
  void drop();

  // Steps of a connection, in the order of their names. Errors: those of the calls.
  [[nodiscard]] Result<void> resolve_route();
  [[nodiscard]] Result<void> ask(QueuePair& qp, const ConnectionOffer& offer);
  [[nodiscard]] Result<void> accept(QueuePair& qp, const ConnectionOffer& offer);
  [[nodiscard]] Result<void> establish();
  [[nodiscard]] Result<void> reject(const ConnectionOffer& offer);
  [[nodiscard]] Result<void> disconnect();
  /// The peer has accepted: limits of `offer` are from now on what both sides take.
  [[nodiscard]] Result<void> hear_answer(const calls::TakeConnectionEvent::Answer& event, ConnectionOffer& offer);
  /// The peer has refused.
  void hear_refusal(const calls::TakeConnectionEvent::Answer& event) { hear(event, kRejectData); }
  /// Takes the queue pair to where it sends and receives. Precondition: the peer is known, and ask or prepare_accept
  /// has been called.
  [[nodiscard]] Result<void> make_ready(QueuePair& qp, const ConnectionOffer& offer);
  /// In front of make_ready of who accepts; lets no time pass. The limits of `offer` are those of both sides.
  void prepare_accept(const ConnectionOffer& offer);

  // What is known of the peer. For any thread; let no time pass, need no memory.
  /// As NDK_FN_GET_CONNECTION_DATA. STATUS_CONNECTION_INVALID: the peer has said nothing.
  NTSTATUS connection_data(ULONG* inbound, ULONG* outbound, PVOID data, ULONG* length);
  NTSTATUS local_address(SOCKADDR* address, ULONG* length);
  NTSTATUS peer_address(SOCKADDR* address, ULONG* length);
  /// Limits that who accepts may have at most.
  [[nodiscard]] std::pair<ULONG, ULONG> offered_limits();

 private:
  /// What the peer's consumer has said, and the limits of both.
  struct Said {
    std::array<std::uint8_t, 224> data{};
    ULONG length{};
    ULONG inbound{};
    ULONG outbound{};
  };

  void forget();
  [[nodiscard]] NTSTATUS begin(const Address& local, const Address& remote);
  [[nodiscard]] calls::ConnectionTerms terms(QueuePair& qp, const ConnectionOffer& offer) const;
  void hear(const calls::TakeConnectionEvent::Answer& event, ULONG length);
  void set_limits(const ConnectionOffer& offer);

  Adapter& adapter_;
  EndpointUser& user_;
  calls::Handle endpoint_{};
  std::uint32_t receive_psn_{};  ///< The first that the peer shall send
  SpinLock lock_;                ///< Guards the following
  Said said_{};
  Address local_{}, peer_{};
  bool addresses_known_{};
};

/// Port space of the services that are connected to (annex A11).
inline constexpr std::uint16_t kConnectionPorts = 0x0106;

/// Of what the connection manager does not do with an address.
[[nodiscard]] NTSTATUS address_status(Error error);

}  // namespace rnic::ndk
