// Requests that pend on a connector.
#include <algorithm>

#include "driver/nd2/connector.hpp"
#include "driver/nd2/status.hpp"

namespace rnic::nd2 {

HRESULT Connector::prepare(Request what, OVERLAPPED* overlapped, PendingList& request) const {
  request.emplace_back().what = what;
  return OverlappedRequest::prepare(overlapped, file_, request.front().request);
}

HRESULT Connector::pend(PendingList& request) {
  const std::lock_guard lock(mutex_);
  if (dead_) return ND_DEVICE_REMOVED;
  if (released_) return ND_CANCELED;
  request.front().request.begin();
  pending_.splice(pending_.end(), request);
  return ND_PENDING;
}

HRESULT Connector::finish_at_once(PendingList& request) {
  request.front().request.begin();
  request.front().request.complete(ND_SUCCESS);
  return ND_PENDING;
}

template <typename Chosen>
Connector::PendingList Connector::take_pending(Chosen&& chosen) {
  PendingList taken;
  const std::lock_guard lock(mutex_);
  for (auto next = pending_.begin(); next != pending_.end();) {
    const auto one = next++;
    if (chosen(*one)) taken.splice(taken.end(), pending_, one);
  }
  return taken;
}

void Connector::finish(Request what, HRESULT status) {
  auto finished = take_pending([what](const Pending& one) { return one.what == what; });
  for (auto& one : finished) one.request.complete(status);
}

void Connector::finish_all(HRESULT status) {
  auto finished = take_pending([](const Pending&) { return true; });
  for (auto& one : finished) one.request.complete(status);
}

/// All that pend are in the port, in their order, when it returns.
HRESULT Connector::CancelOverlappedRequests() {
  return guarded([&] {
    cancel(nullptr);
    return ND_SUCCESS;
  });
}

/// Without its Connect or Accept nothing can become of the connection.
bool Connector::cancel(const OVERLAPPED* one) {
  const SleepLock::Guard guard(steps_);
  auto cancelled = take_pending([one](const Pending& each) { return one == nullptr || each.request.is(one); });
  const bool crucial = std::ranges::any_of(
      cancelled, [](const Pending& each) { return each.what == Request::kConnect || each.what == Request::kAccept; });
  if (guard && crucial) fail();
  for (auto& each : cancelled) each.request.complete(ND_CANCELED);
  return !cancelled.empty();
}

void Connector::on_event(const hw::Eqe& eqe) {
  if (eqe.event_type == static_cast<std::uint8_t>(hw::EqeType::kDeviceFatal)) {
    {
      const std::lock_guard lock(mutex_);
      dead_ = true;
    }
    return finish_all(ND_DEVICE_REMOVED);
  }
  if (eqe.event_type != static_cast<std::uint8_t>(calls::KernelEvent::kConnection)) broken_ = true;
  process_->work_list().put(shared_from_this());
}

void Connector::break_up() {
  broken_ = true;
  process_->work_list().put(shared_from_this());
}

void Connector::on_final_release() {
  {
    const std::lock_guard lock(mutex_);
    released_ = true;
  }
  static_cast<void>(guarded([&] {
    const SleepLock::Guard guard(steps_);
    if (guard) fail();
    return ND_SUCCESS;
  }));
  finish_all(ND_CANCELED);
  process_->work_list().remove(*this);
}

bool Connector::reserve() {
  const SleepLock::Guard guard(steps_);
  State idle = State::kIdle;
  return guard && !bound_ && state_.compare_exchange_strong(idle, State::kAwaiting);
}

void Connector::release_reservation() {
  State awaiting = State::kAwaiting;
  state_.compare_exchange_strong(awaiting, State::kIdle);
}

HRESULT Connector::adopt(calls::Handle handle, std::span<const std::uint8_t> data) {
  return guarded([&] {
    auto endpoint = umd::KernelEndpoint::adopt(*process_, handle);
    const SleepLock::Guard guard(steps_);
    if (!guard) return ND_DEVICE_REMOVED;
    if (state_ != State::kAwaiting) return ND_CANCELED;
    close_endpoint();
    own_endpoint(std::move(endpoint));
    active_ = false;
    keep_data(data);
    if (auto learned = learn(); !learned) {
      close_endpoint();
      state_ = State::kIdle;
      return control_status(learned.error());
    }
    state_ = State::kRequested;
    // It may have had something to say before anybody was there to hear it.
    process_->work_list().put(shared_from_this());
    return ND_SUCCESS;
  });
}

}  // namespace rnic::nd2
