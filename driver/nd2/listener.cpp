#include "driver/nd2/listener.hpp"

#include "driver/nd2/bind_status.hpp"
#include "driver/nd2/status.hpp"

namespace rnic::nd2 {

using calls::ConnectionEvent;

/// All that pend are in the port, in their order, when it returns.
HRESULT Listener::CancelOverlappedRequests() {
  return guarded([&] {
    finish(nullptr, ND_CANCELED);
    return ND_SUCCESS;
  });
}

bool Listener::cancel(const OVERLAPPED* one) { return finish(one, ND_CANCELED); }

HRESULT Listener::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  return guarded([&] {
    process_->take_events();
    process_->work();
    return overlapped_result(process_->node(), overlapped, wait != FALSE);
  });
}

HRESULT Listener::Bind(const sockaddr* address, ULONG bytes) {
  return guarded([&] {
    SocketAddress at;
    if (const HRESULT status = read_address(address, bytes, at); status != ND_SUCCESS) return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (bound_) return bind_status(Error::kInvalidState, at.port);
    if (auto found = resolve_loopback(*process_, at); !found) return bind_status(found.error(), at.port);
    if (endpoint_ == nullptr) {
      auto made = umd::KernelEndpoint::create(*process_);
      if (!made) return made.error() == Error::kNotSupported ? ND_DEVICE_NOT_READY : control_status(made.error());
      process_->events().subscribe(EventTable::Of::kEndpoint, (*made)->handle(), shared_from_this());
      endpoint_ = made.take();
      process_->expect_events(true);
    }
    const auto given =
        process_->call(calls::BindEndpoint{.address = at.gid, .endpoint = endpoint_->handle(), .port = at.port});
    if (!given) return bind_status(given.error(), at.port);
    at.port = given->port;
    local_ = at;
    bound_ = true;
    return ND_SUCCESS;
  });
}

HRESULT Listener::Listen(ULONG backlog) {
  return guarded([&] {
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (!bound_ || listening_) return ND_INVALID_DEVICE_STATE;
    const auto done = process_->call(calls::Listen{.endpoint = endpoint_->handle(),
                                                   .backlog = backlog,
                                                   .services = static_cast<std::uint8_t>(calls::Services::kRc)});
    if (!done) return control_status(done.error());
    listening_ = true;
    return ND_SUCCESS;
  });
}

HRESULT Listener::GetLocalAddress(sockaddr* address, ULONG* bytes) {
  return guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    return listening_ ? write_address(local_, address, bytes) : ND_INVALID_DEVICE_STATE;
  });
}

HRESULT Listener::GetConnectionRequest(IUnknown* unknown, OVERLAPPED* overlapped) {
  return guarded([&] {
    const auto connector = Connector::find(unknown);
    if (connector == nullptr || connector->process() != process_) return ND_INVALID_PARAMETER_1;
    PendingList request;
    request.emplace_back().connector = connector;
    if (const HRESULT status = OverlappedRequest::prepare(overlapped, file_, request.front().request);
        status != ND_SUCCESS)
      return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (!listening_) return ND_INVALID_DEVICE_STATE;
    if (!connector->reserve()) return ND_CONNECTION_ACTIVE;
    {
      const std::lock_guard lock(mutex_);
      if (dead_) {
        connector->release_reservation();
        return ND_DEVICE_REMOVED;
      }
      request.front().request.begin();
      pending_.splice(pending_.end(), request);
    }
    // Some may wait already.
    hand_out_requests();
    return ND_PENDING;
  });
}

void Listener::on_event(const hw::Eqe& eqe) {
  if (eqe.event_type != static_cast<std::uint8_t>(hw::EqeType::kDeviceFatal))
    return process_->work_list().put(shared_from_this());
  {
    const std::lock_guard lock(mutex_);
    dead_ = true;
  }
  finish(nullptr, ND_DEVICE_REMOVED);
}

void Listener::work() {
  static_cast<void>(guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (guard) hand_out_requests();
    return ND_SUCCESS;
  }));
}

Listener::PendingList Listener::take_oldest() {
  PendingList oldest;
  const std::lock_guard lock(mutex_);
  if (!pending_.empty()) oldest.splice(oldest.end(), pending_, pending_.begin());
  return oldest;
}

/// One for each that asks, the oldest first.
void Listener::hand_out_requests() {
  const auto asked = [&] {
    const std::lock_guard lock(mutex_);
    return !pending_.empty();
  };
  while (endpoint_ != nullptr && asked()) {
    const auto event = process_->call(calls::TakeConnectionEvent{.endpoint = endpoint_->handle()});
    if (!event) {
      auto oldest = take_oldest();
      for (auto& one : oldest) {
        one.connector->release_reservation();
        one.request.complete(control_status(event.error()));
      }
      return;
    }
    if (static_cast<ConnectionEvent>(event->type) == ConnectionEvent::kNone) return;
    if (event->incoming == 0) continue;
    if (event->datagram != 0)
      umd::KernelEndpoint::refuse(*process_, event->incoming);
    else
      finish_oldest(*event);
  }
}

/// Whoever has released the connector that was to have it does not get the request; neither does who has cancelled.
void Listener::finish_oldest(const calls::TakeConnectionEvent::Answer& event) {
  auto oldest = take_oldest();
  if (oldest.empty()) return umd::KernelEndpoint::refuse(*process_, event.incoming);
  auto& one = oldest.front();
  const HRESULT status = one.connector->adopt(event.incoming, std::span(event.data.data(), event.data_length));
  if (status != ND_SUCCESS) one.connector->release_reservation();
  one.request.complete(status);
}

bool Listener::finish(const OVERLAPPED* one, HRESULT status) {
  PendingList finished;
  {
    const std::lock_guard lock(mutex_);
    for (auto next = pending_.begin(); next != pending_.end();) {
      const auto each = next++;
      if (one == nullptr || each->request.is(one)) finished.splice(finished.end(), pending_, each);
    }
  }
  for (auto& each : finished) {
    each.connector->release_reservation();
    each.request.complete(status);
  }
  return !finished.empty();
}

/// Who waits at it is refused.
void Listener::on_final_release() {
  static_cast<void>(guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (guard && endpoint_ != nullptr) {
      process_->events().unsubscribe(EventTable::Of::kEndpoint, endpoint_->handle());
      process_->expect_events(false);
      endpoint_.reset();
    }
    return ND_SUCCESS;
  }));
  finish(nullptr, ND_CANCELED);
  process_->work_list().remove(*this);
}

}  // namespace rnic::nd2
