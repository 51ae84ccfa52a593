#include "driver/ndk/connection_endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace rnic::ndk {
namespace {

constexpr std::uint8_t kRetries = 7, kRnrRetries = 6, kEndlessRnrRetries = 7;
constexpr std::uint8_t kRnrTimer = 12;  // 0.64 ms (9.7.5.2.8)

template <typename Answer>
Result<void> done(const Result<Answer>& answer) {
  return answer ? Result<void>() : answer.error();
}

}  // namespace

NTSTATUS address_status(Error error) {
  switch (error) {
    case Error::kNotFound: return STATUS_INVALID_ADDRESS;
    case Error::kExists: return STATUS_SHARING_VIOLATION;
    case Error::kOutOfResources: return STATUS_TOO_MANY_ADDRESSES;
    default: return control_status(error);
  }
}

void ConnectionOffer::set(ULONG inbound_reads, ULONG outbound_reads, const void* bytes, ULONG count) {
  inbound = inbound_reads;
  outbound = outbound_reads;
  length = count;
  if (count != 0) std::memcpy(data.data(), bytes, count);
}

NTSTATUS ConnectionEndpoint::open(const Address& local, const Address& remote) {
  const NTSTATUS status = begin(local, remote);
  if (status != STATUS_SUCCESS) drop();
  return status;
}

NTSTATUS ConnectionEndpoint::begin(const Address& local, const Address& remote) {
  forget();
  auto& context = *adapter_.context();
  if (!context.usable()) return STATUS_DEVICE_REMOVED;
  const auto made = context.call(calls::CreateEndpoint{.channel = adapter_.channel(), .port_space = kConnectionPorts});
  if (!made) return control_status(made.error());
  endpoint_ = made->endpoint;
  const auto known = or_out_of_memory([&]() -> Result<void> {
    adapter_.subscribe(endpoint_, &user_);
    return {};
  });
  if (!known) return control_status(known.error());
  const auto bound = context.call(calls::BindEndpoint{.address = local.gid, .endpoint = endpoint_, .port = local.port});
  if (!bound) return address_status(bound.error());
  const auto resolved = context.call(calls::ResolveAddress{
      .local = local.gid, .remote = remote.gid, .endpoint = endpoint_, .remote_port = remote.port});
  // The port has no address that leads there.
  if (!resolved) {
    const bool strange = resolved.error() == Error::kNotFound || resolved.error() == Error::kInvalidParameter;
    return strange ? STATUS_NETWORK_UNREACHABLE : control_status(resolved.error());
  }
  const std::lock_guard lock(lock_);
  local_ = Address::of(resolved->local, bound->port);
  peer_ = Address::of(remote.gid, remote.port);
  addresses_known_ = true;
  return STATUS_SUCCESS;
}

Result<void> ConnectionEndpoint::take_over(calls::Handle endpoint, const calls::TakeConnectionEvent::Answer& event) {
  const auto known = adapter_.context()->call(calls::QueryEndpoint{.endpoint = endpoint});
  if (!known) return known.error();
  const auto subscribed = or_out_of_memory([&]() -> Result<void> {
    adapter_.subscribe(endpoint, &user_);
    return {};
  });
  if (!subscribed) return subscribed;
  endpoint_ = endpoint;
  hear(event, kRequestData);
  const ULONG most = adapter_.info().MaxInboundReadLimit;
  const std::lock_guard lock(lock_);
  said_.inbound = std::min<ULONG>(most, known->initiator_depth);
  said_.outbound = std::min<ULONG>(most, known->responder_resources);
  local_ = Address::of(known->local, known->local_port);
  peer_ = Address::of(known->remote, known->remote_port);
  addresses_known_ = true;
  return {};
}

/// Of an attempt that has failed.
void ConnectionEndpoint::forget() {
  const std::lock_guard lock(lock_);
  said_ = {};
  addresses_known_ = false;
}

void ConnectionEndpoint::drop() {
  if (endpoint_ == 0) return;
  adapter_.subscribe(endpoint_, nullptr);
  static_cast<void>(
      adapter_.context()
          ->call(calls::Destroy{.object = endpoint_, .kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint)})
          .ok());
  endpoint_ = 0;
}

Result<void> ConnectionEndpoint::resolve_route() {
  return done(adapter_.context()->call(calls::ResolveRoute{.endpoint = endpoint_}));
}

calls::ConnectionTerms ConnectionEndpoint::terms(QueuePair& qp, const ConnectionOffer& offer) const {
  return {.qp = qp.core()->kernel_qp().handle(),
          .receive_psn = receive_psn_,
          .responder_resources = static_cast<std::uint8_t>(offer.inbound),
          .initiator_depth = static_cast<std::uint8_t>(offer.outbound),
          .retry_count = kRetries,
          .rnr_retry = qp.has_srq() ? kEndlessRnrRetries : kRnrRetries,
          .flow_control = true,
          .srq = qp.has_srq()};
}

Result<void> ConnectionEndpoint::ask(QueuePair& qp, const ConnectionOffer& offer) {
  receive_psn_ = adapter_.kernel().random_psn();
  calls::Connect request{
      .terms = terms(qp, offer), .endpoint = endpoint_, .data_length = static_cast<std::uint8_t>(offer.length)};
  std::copy_n(offer.data.begin(), offer.length, request.data.begin());
  return done(adapter_.context()->call(request));
}

void ConnectionEndpoint::prepare_accept(const ConnectionOffer& offer) {
  receive_psn_ = adapter_.kernel().random_psn();
  set_limits(offer);
}

Result<void> ConnectionEndpoint::accept(QueuePair& qp, const ConnectionOffer& offer) {
  calls::Accept answer{
      .terms = terms(qp, offer), .endpoint = endpoint_, .data_length = static_cast<std::uint8_t>(offer.length)};
  std::copy_n(offer.data.begin(), offer.length, answer.data.begin());
  return done(adapter_.context()->call(answer));
}

Result<void> ConnectionEndpoint::establish() {
  return done(adapter_.context()->call(calls::Establish{.endpoint = endpoint_}));
}

Result<void> ConnectionEndpoint::reject(const ConnectionOffer& offer) {
  calls::Reject answer{.endpoint = endpoint_, .data_length = static_cast<std::uint8_t>(offer.length)};
  std::copy_n(offer.data.begin(), offer.length, answer.data.begin());
  return done(adapter_.context()->call(answer));
}

Result<void> ConnectionEndpoint::disconnect() {
  return done(adapter_.context()->call(calls::Disconnect{.endpoint = endpoint_}));
}

void ConnectionEndpoint::hear(const calls::TakeConnectionEvent::Answer& event, ULONG length) {
  const std::lock_guard lock(lock_);
  said_.length = length;
  said_.data = {};
  std::copy_n(event.data.begin(), std::min<ULONG>(event.data_length, length), said_.data.begin());
}

void ConnectionEndpoint::set_limits(const ConnectionOffer& offer) {
  const std::lock_guard lock(lock_);
  said_.inbound = offer.inbound;
  said_.outbound = offer.outbound;
}

Result<void> ConnectionEndpoint::hear_answer(const calls::TakeConnectionEvent::Answer& event, ConnectionOffer& offer) {
  const auto known = adapter_.context()->call(calls::QueryEndpoint{.endpoint = endpoint_});
  if (!known) return known.error();
  hear(event, kReplyData);
  offer.inbound = std::min<ULONG>(offer.inbound, known->initiator_depth);
  offer.outbound = std::min<ULONG>(offer.outbound, known->responder_resources);
  set_limits(offer);
  return {};
}

Result<void> ConnectionEndpoint::make_ready(QueuePair& qp, const ConnectionOffer& offer) {
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
  connection.inbound_reads = static_cast<std::uint8_t>(offer.inbound);
  connection.outbound_reads = static_cast<std::uint8_t>(offer.outbound);
  connection.min_rnr_timer = kRnrTimer;
  connection.ack_timeout = known->ack_timeout;
  connection.retry_count = known->retry_count;
  connection.rnr_retry = known->rnr_retry;
  connection.remote_atomic = false;
  return qp.core()->connect(connection);
}

NTSTATUS ConnectionEndpoint::connection_data(ULONG* inbound, ULONG* outbound, PVOID data, ULONG* length) {
  if (length == nullptr || (data == nullptr && *length != 0)) return STATUS_INVALID_PARAMETER;
  const std::lock_guard lock(lock_);
  if (said_.length == 0) return STATUS_CONNECTION_INVALID;
  if (inbound != nullptr) *inbound = said_.inbound;
  if (outbound != nullptr) *outbound = said_.outbound;
  const ULONG room = *length;
  *length = said_.length;
  if (data == nullptr) return STATUS_SUCCESS;
  std::copy_n(said_.data.begin(), std::min(room, said_.length), static_cast<std::uint8_t*>(data));
  return room < said_.length ? STATUS_BUFFER_TOO_SMALL : STATUS_SUCCESS;
}

NTSTATUS ConnectionEndpoint::local_address(SOCKADDR* address, ULONG* length) {
  const std::lock_guard lock(lock_);
  return addresses_known_ ? local_.copy_to(address, length) : STATUS_CONNECTION_INVALID;
}

NTSTATUS ConnectionEndpoint::peer_address(SOCKADDR* address, ULONG* length) {
  const std::lock_guard lock(lock_);
  return addresses_known_ ? peer_.copy_to(address, length) : STATUS_CONNECTION_INVALID;
}

std::pair<ULONG, ULONG> ConnectionEndpoint::offered_limits() {
  const std::lock_guard lock(lock_);
  return {said_.inbound, said_.outbound};
}

}  // namespace rnic::ndk
