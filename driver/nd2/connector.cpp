#include "driver/nd2/connector.hpp"

#include <algorithm>
#include <cstring>

#include "driver/nd2/bind_status.hpp"
#include "driver/nd2/client_memory.hpp"
#include "driver/nd2/status.hpp"

namespace rnic::nd2 {
namespace {

// NTSTATUS values that the interface has no names for.
constexpr auto kAlreadyBound = static_cast<HRESULT>(0xC0000238);    // STATUS_ADDRESS_ALREADY_ASSOCIATED
constexpr auto kBadNetworkName = static_cast<HRESULT>(0xC00000CC);  // STATUS_BAD_NETWORK_NAME

template <std::size_t Room>
HRESULT read_data(std::array<std::uint8_t, Room>& to, const VOID* data, ULONG length, ULONG most) {
  if (length > most) return ND_INVALID_BUFFER_SIZE;
  return copy_from_client(to.data(), data, length) ? ND_SUCCESS : ND_ACCESS_VIOLATION;
}

}  // namespace

HRESULT bind_status(Error error, std::uint16_t port) {
  switch (error) {
    case Error::kInvalidState: return kAlreadyBound;
    case Error::kExists: return ND_SHARING_VIOLATION;
    case Error::kNotFound: return ND_INVALID_ADDRESS;
    case Error::kOutOfResources: return port == 0 ? ND_TOO_MANY_ADDRESSES : ND_INSUFFICIENT_RESOURCES;
    default: return control_status(error);
  }
}

HRESULT Connector::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  return guarded([&] {
    process_->take_events();
    process_->work();
    return overlapped_result(process_->node(), overlapped, wait != FALSE);
  });
}

HRESULT Connector::Bind(const sockaddr* address, ULONG bytes) {
  return guarded([&] {
    SocketAddress at;
    if (const HRESULT status = read_address(address, bytes, at); status != ND_SUCCESS) return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (bound_ || state_ != State::kIdle) return kAlreadyBound;
    if (auto found = resolve_loopback(*process_, at); !found) return bind_status(found.error(), at.port);
    if (const HRESULT status = open_endpoint(); status != ND_SUCCESS) return status;
    const auto given =
        process_->call(calls::BindEndpoint{.address = at.gid, .endpoint = endpoint_->handle(), .port = at.port});
    if (!given) return bind_status(given.error(), at.port);
    at.port = given->port;
    local_ = at;
    bound_ = true;
    return ND_SUCCESS;
  });
}

HRESULT Connector::Connect(IUnknown* pair, const sockaddr* to, ULONG bytes, ULONG inbound, ULONG outbound,
                           const VOID* data, ULONG length, OVERLAPPED* overlapped) {
  return guarded([&] {
    const auto queue_pair = QueuePair::find(pair);
    if (queue_pair == nullptr || queue_pair->core()->process() != process_) return ND_INVALID_PARAMETER_1;
    SocketAddress remote;
    HRESULT status = read_address(to, bytes, remote, ND_INVALID_PARAMETER_2, ND_INVALID_PARAMETER_3);
    if (status != ND_SUCCESS) return status;
    calls::Connect connect{.data_length = static_cast<std::uint8_t>(length)};
    if ((status = read_data(connect.data, data, length, kMaxCallerData)) != ND_SUCCESS) return status;
    if (remote.is_any()) return kBadNetworkName;
    PendingList request;
    if ((status = prepare(Request::kConnect, overlapped, request)) != ND_SUCCESS) return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (state_ != State::kIdle) return state_ == State::kFailed ? ND_CONNECTION_INVALID : ND_CONNECTION_ACTIVE;
    if ((status = claim(queue_pair)) != ND_SUCCESS) return status;
    Claimed claimed(*this);
    wish_ = {inbound, outbound};
    active_ = true;
    if ((status = resolve(remote)) != ND_SUCCESS) return status;
    connect.terms = terms();
    connect.endpoint = endpoint_->handle();
    // Busy: the queue pair is known from a connection that is not forgotten yet.
    if (const auto asked = process_->call(connect); !asked)
      return asked.error() == Error::kBusy ? ND_CONNECTION_ACTIVE : control_status(asked.error());
    claimed.keep();
    data_known_ = peer_known_ = false;
    state_ = State::kConnecting;
    return pend(request);
  });
}

HRESULT Connector::CompleteConnect(OVERLAPPED* overlapped) {
  return guarded([&] {
    PendingList request;
    if (const HRESULT status = prepare(Request::kConnect, overlapped, request); status != ND_SUCCESS) return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    catch_up();
    if (state_ != State::kResponded) return state_error();
    auto ready = make_ready();
    if (!ready) {
      end_connection();
      return control_status(ready.error());
    }
    if (const auto said = process_->call(calls::Establish{.endpoint = endpoint_->handle()}); !said) {
      // The peer has given up since.
      static_cast<void>(pair_->core()->end().ok());
      fail();
      return said.error() == Error::kInvalidState ? ND_IO_TIMEOUT : control_status(said.error());
    }
    state_ = State::kConnected;
    return finish_at_once(request);
  });
}

HRESULT Connector::Accept(IUnknown* pair, ULONG inbound, ULONG outbound, const VOID* data, ULONG length,
                          OVERLAPPED* overlapped) {
  return guarded([&] {
    const auto queue_pair = QueuePair::find(pair);
    if (queue_pair == nullptr || queue_pair->core()->process() != process_) return ND_INVALID_PARAMETER_1;
    calls::Accept accept{.data_length = static_cast<std::uint8_t>(length)};
    HRESULT status = read_data(accept.data, data, length, kMaxCalleeData);
    if (status != ND_SUCCESS) return status;
    PendingList request;
    if ((status = prepare(Request::kAccept, overlapped, request)) != ND_SUCCESS) return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    catch_up();
    if (state_ == State::kAbandoned) return ND_CONNECTION_REFUSED;  // decisions 35
    if (state_ != State::kRequested) {
      const bool busy = state_ >= State::kConnecting && state_ <= State::kDisconnecting;
      return busy ? ND_CONNECTION_ACTIVE : state_error();
    }
    if ((status = claim(queue_pair)) != ND_SUCCESS) return status;
    Claimed claimed(*this);
    wish_ = {inbound, outbound};
    accept.terms = terms();
    accept.endpoint = endpoint_->handle();
    // The peer's first message may follow its answer at once.
    if (auto ready = make_ready(); !ready) return control_status(ready.error());
    if (const auto said = process_->call(accept); !said) {
      static_cast<void>(pair_->core()->end().ok());
      fail();
      return said.error() == Error::kInvalidState ? ND_CONNECTION_REFUSED : control_status(said.error());
    }
    claimed.keep();
    state_ = State::kAccepting;
    return pend(request);
  });
}

/// The connector is then as a new one.
HRESULT Connector::Reject(const VOID* data, ULONG length) {
  return guarded([&] {
    calls::Reject reject{.data_length = static_cast<std::uint8_t>(length)};
    if (const HRESULT status = read_data(reject.data, data, length, kMaxCalleeData); status != ND_SUCCESS)
      return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    catch_up();
    if (state_ == State::kAbandoned) return ND_CONNECTION_ABORTED;
    if (state_ != State::kRequested && state_ != State::kResponded) return state_error();
    reject.endpoint = endpoint_->handle();
    const auto said = process_->call(reject);
    give_up_pair();
    close_endpoint();
    state_ = State::kIdle;
    data_known_ = peer_known_ = false;
    if (said) return ND_SUCCESS;
    return said.error() == Error::kInvalidState ? ND_CONNECTION_ABORTED : control_status(said.error());
  });
}

/// What the peer has said, as far as this side can do it.
HRESULT Connector::GetReadLimits(ULONG* inbound, ULONG* outbound) {
  return guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (!peer_known_) return ND_CONNECTION_INVALID;
    const ULONG most = process_->limits().max_rd_atomic;
    if (inbound != nullptr) *inbound = std::min<ULONG>(known_.initiator_depth, most);
    if (outbound != nullptr) *outbound = std::min<ULONG>(known_.responder_resources, most);
    return ND_SUCCESS;
  });
}

HRESULT Connector::GetPrivateData(VOID* data, ULONG* length) {
  return guarded([&] {
    if (length == nullptr) return ND_INVALID_PARAMETER_2;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (!data_known_) return ND_CONNECTION_INVALID;
    const ULONG room = data == nullptr ? 0 : *length;
    if (room != 0) std::memcpy(data, data_.data(), std::min<ULONG>(room, data_length_));
    *length = data_length_;
    return room < data_length_ ? ND_BUFFER_OVERFLOW : ND_SUCCESS;
  });
}

HRESULT Connector::GetLocalAddress(sockaddr* address, ULONG* bytes) {
  return guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    return local_.family == 0 ? ND_CONNECTION_INVALID : write_address(local_, address, bytes);
  });
}

HRESULT Connector::GetPeerAddress(sockaddr* address, ULONG* bytes) {
  return guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (!peer_known_) return ND_CONNECTION_INVALID;
    return write_address(address_of(known_.remote, known_.remote_port), address, bytes);
  });
}

HRESULT Connector::NotifyDisconnect(OVERLAPPED* overlapped) {
  return guarded([&] {
    PendingList request;
    if (const HRESULT status = prepare(Request::kNotifyDisconnect, overlapped, request); status != ND_SUCCESS)
      return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    catch_up();
    switch (state_) {
      case State::kConnected:
      case State::kDisconnecting: return pend(request);
      case State::kDisconnected: return finish_at_once(request);
      default: return ND_CONNECTION_INVALID;
    }
  });
}

HRESULT Connector::Disconnect(OVERLAPPED* overlapped) {
  return guarded([&] {
    PendingList request;
    if (const HRESULT status = prepare(Request::kDisconnect, overlapped, request); status != ND_SUCCESS) return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    catch_up();
    const bool over = state_ == State::kDisconnecting || state_ == State::kDisconnected;
    if (asked_to_end_ || (state_ != State::kConnected && !over)) return ND_CONNECTION_INVALID;
    asked_to_end_ = true;
    static_cast<void>(pair_->core()->end().ok());
    end_connection();
    return state_ == State::kDisconnected ? finish_at_once(request) : pend(request);
  });
}

}  // namespace rnic::nd2
