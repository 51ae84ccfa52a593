#include "driver/nd2/shared_receive_queue.hpp"

#include "driver/nd2/segments.hpp"
#include "driver/nd2/status.hpp"

namespace rnic::nd2 {

HRESULT SharedReceiveQueue::CancelOverlappedRequests() {
  return guarded([&] {
    finish_all(ND_CANCELED);
    return ND_SUCCESS;
  });
}

bool SharedReceiveQueue::cancel(const OVERLAPPED* one) {
  OverlappedRequests cancelled;
  {
    const std::lock_guard lock(mutex_);
    take_requests(pending_, one, cancelled);
  }
  for (auto& request : cancelled) request.complete(ND_CANCELED);
  return !cancelled.empty();
}

HRESULT SharedReceiveQueue::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  return guarded([&] { return overlapped_result(process().node(), overlapped, wait != FALSE); });
}

// As for completion queues.
HRESULT SharedReceiveQueue::GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) {
  if (group == nullptr || affinity == nullptr) return ND_INVALID_PARAMETER;
  if (!core_->process()->usable()) return ND_DEVICE_REMOVED;
  *group = 0;
  *affinity = core_->affinity();
  return ND_SUCCESS;
}

/// 0 keeps what there is. A threshold above the depth would fire for ever.
HRESULT SharedReceiveQueue::Modify(ULONG depth, ULONG threshold) {
  return guarded([&] {
    if (!core_->process()->usable()) return ND_DEVICE_REMOVED;
    const ULONG depth_then = depth != 0 ? depth : core_->depth();
    if (depth_then > process().limits().max_srq_depth || threshold > depth_then) return ND_INVALID_PARAMETER;
    if (depth != 0) {
      if (auto resized = core_->resize(depth); !resized) return control_status(resized.error());
    }
    if (threshold == 0) return ND_SUCCESS;
    bool armed = false;
    {
      const std::lock_guard lock(mutex_);
      threshold_ = static_cast<std::uint16_t>(threshold);
      armed = !pending_.empty();
    }
    return armed ? arm() : ND_SUCCESS;
  });
}

HRESULT SharedReceiveQueue::arm() {
  std::uint16_t threshold{};
  {
    const std::lock_guard lock(mutex_);
    threshold = threshold_;
  }
  if (threshold == 0) return ND_SUCCESS;
  auto armed = core_->arm(threshold);
  return armed.ok() ? ND_SUCCESS : control_status(armed.error());
}

HRESULT SharedReceiveQueue::Notify(OVERLAPPED* overlapped) {
  return guarded([&] {
    if (!core_->process()->usable()) return ND_DEVICE_REMOVED;
    // What has happened finishes earlier requests, not this one.
    process().take_events();
    OverlappedRequests request;
    if (const HRESULT status = prepare_request(overlapped, file_, request); status != ND_SUCCESS) return status;
    {
      const std::lock_guard lock(mutex_);
      if (dead_) return ND_DEVICE_REMOVED;
      if (failed_) return ND_INTERNAL_ERROR;
      request.front().begin();
      pending_.splice(pending_.end(), request);
    }
    if (const HRESULT status = arm(); status != ND_SUCCESS) finish_all(status);
    return ND_PENDING;
  });
}

HRESULT SharedReceiveQueue::Receive(VOID* context, const ND2_SGE sge[], ULONG count) {
  return guarded([&] {
    if (sge == nullptr && count != 0) return ND_INVALID_PARAMETER_2;
    auto posted = core_->post({.id = reinterpret_cast<std::uintptr_t>(context), .segments = segments_of(sge, count)});
    return posted.ok() ? ND_SUCCESS : posting_status(posted.error());
  });
}

void SharedReceiveQueue::on_event(const hw::Eqe& eqe) {
  const auto type = static_cast<hw::EqeType>(eqe.event_type);
  const bool dead = type == hw::EqeType::kDeviceFatal;
  const bool error = dead || type == hw::EqeType::kSrqError;
  if (error) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    dead_ = dead_ || dead;
  }
  finish_all(error ? ND_INTERNAL_ERROR : ND_SUCCESS);
}

void SharedReceiveQueue::finish_all(HRESULT status) {
  OverlappedRequests finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(pending_);
  }
  for (auto& request : finished) request.complete(status);
}

// Queue pairs keep the queue behind this until they are gone (section 6 of the interface reference).
void SharedReceiveQueue::on_final_release() {
  process().events().unsubscribe(EventTable::Of::kSrq, core_->srqn());
  finish_all(ND_CANCELED);
}

}  // namespace rnic::nd2
