#include "driver/nd2/completion_queue.hpp"

#include "driver/nd2/status.hpp"

namespace rnic::nd2 {
namespace {

hw::CqArm arm_of(ULONG type) {
  switch (type) {
    case ND_CQ_NOTIFY_ERRORS: return hw::CqArm::kErrors;
    case ND_CQ_NOTIFY_ANY: return hw::CqArm::kAny;
    case ND_CQ_NOTIFY_SOLICITED: return hw::CqArm::kSolicited;
    default: return hw::CqArm::kNone;
  }
}

ND2_RESULT result_of(const umd::Completion& completion, HRESULT status) {
  const bool received = status == ND_SUCCESS && completion.kind == umd::RequestKind::kReceive;
  return {.Status = status,
          .BytesTransferred = received ? completion.byte_count : 0,
          .QueuePairContext = completion.qp_context,
          .RequestContext = reinterpret_cast<void*>(completion.id),
          .RequestType = request_type(completion.kind)};
}

}  // namespace

HRESULT CompletionQueue::CancelOverlappedRequests() {
  return guarded([&] {
    finish_all(ND_CANCELED);
    return ND_SUCCESS;
  });
}

bool CompletionQueue::cancel(const OVERLAPPED* one) {
  OverlappedRequests cancelled;
  {
    const std::lock_guard lock(mutex_);
    for (auto& requests : pending_) take_requests(requests, one, cancelled);
  }
  for (auto& request : cancelled) request.complete(ND_CANCELED);
  return !cancelled.empty();
}

HRESULT CompletionQueue::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  return guarded([&] { return overlapped_result(process_->node(), overlapped, wait != FALSE); });
}

// The processor to whose event queue the notifications go: which thread takes them from there is the process's affair.
HRESULT CompletionQueue::GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) {
  if (group == nullptr || affinity == nullptr) return ND_INVALID_PARAMETER;
  if (!process_->usable()) return ND_DEVICE_REMOVED;
  *group = 0;
  *affinity = core_->affinity();
  return ND_SUCCESS;
}

HRESULT CompletionQueue::Resize(ULONG depth) {
  return guarded([&] {
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    const auto done = core_->resize(depth);
    if (done.ok()) return ND_SUCCESS;
    // Overrun: as for Notify (decisions 26).
    return done.error() == Error::kInvalidState ? ND_BUFFER_OVERFLOW : control_status(done.error());
  });
}

HRESULT CompletionQueue::Notify(ULONG type, OVERLAPPED* overlapped) {
  return guarded([&] {
    const hw::CqArm kind = arm_of(type);
    if (kind == hw::CqArm::kNone) return ND_INVALID_PARAMETER_1;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    // What has happened finishes earlier requests, not this one.
    const std::uint64_t solicited = kind == hw::CqArm::kSolicited ? core_->solicited(polled_solicited_) : 0;
    process_->take_events();
    OverlappedRequests request;
    if (const HRESULT status = prepare_request(overlapped, file_, request); status != ND_SUCCESS) return status;
    switch (admit(kind, request, solicited)) {
      case Admission::kArm: core_->arm(kind); break;
      case Admission::kPend: break;
      case Admission::kFire: request.front().complete(ND_SUCCESS); break;
      case Admission::kOverrun: return ND_BUFFER_OVERFLOW;
      case Admission::kDead: return ND_DEVICE_REMOVED;
    }
    return ND_PENDING;
  });
}

CompletionQueue::Admission CompletionQueue::admit(hw::CqArm kind, OverlappedRequests& request,
                                                  std::uint64_t solicited) {
  const std::lock_guard lock(mutex_);
  if (dead_) return Admission::kDead;
  if (overrun_) return Admission::kOverrun;
  request.front().begin();
  if (takes_unclaimed_event(kind)) return Admission::kFire;
  const bool stronger = kind > strongest();
  auto& requests = pending(kind);
  if (requests.empty() && kind == hw::CqArm::kSolicited) solicited_ = solicited;
  requests.splice(requests.end(), request);
  return stronger ? Admission::kArm : Admission::kPend;
}

/// Kind of those that pend.
hw::CqArm CompletionQueue::strongest() const {
  auto kind = pending_.size() - 1;
  while (kind != 0 && pending_.at(kind).empty()) --kind;
  return static_cast<hw::CqArm>(kind);
}

/// What the device was armed for before, and has reported, may be something else.
bool CompletionQueue::is_for_pending() {
  const hw::CqArm kind = strongest();
  if (kind == hw::CqArm::kSolicited && core_->solicited(polled_solicited_) == solicited_) {
    core_->renew_arm(kind);
    return false;
  }
  return kind > hw::CqArm::kErrors;
}

/// The event was for some entry or other. What a weaker Notify does not want of it stays for one that does.
bool CompletionQueue::takes_unclaimed_event(hw::CqArm kind) {
  if (!unclaimed_event_ || kind == hw::CqArm::kErrors) return false;
  if (kind == hw::CqArm::kSolicited && core_->solicited() == 0) return false;
  unclaimed_event_ = false;
  return true;
}

void CompletionQueue::on_event(const hw::Eqe& eqe) {
  HRESULT status = ND_SUCCESS;
  {
    const std::lock_guard lock(mutex_);
    switch (static_cast<hw::EqeType>(eqe.event_type)) {
      case hw::EqeType::kCqError:
        overrun_ = true;
        status = ND_BUFFER_OVERFLOW;
        break;
      case hw::EqeType::kDeviceFatal:
        dead_ = true;
        status = ND_INTERNAL_ERROR;
        break;
      default:
        if (!is_for_pending()) {
          unclaimed_event_ = true;
          return;
        }
    }
  }
  finish_all(status);
}

void CompletionQueue::finish_all(HRESULT status) {
  OverlappedRequests finished;
  {
    const std::lock_guard lock(mutex_);
    for (auto& requests : pending_) take_requests(requests, nullptr, finished);
  }
  for (auto& request : finished) request.complete(status);
}

ULONG CompletionQueue::GetResults(ND2_RESULT results[], ULONG count) {
  const std::size_t taken = core_->poll(count, [&](const umd::Completion& completion) {
    // Counts what is_solicited: take_failure the failed ones.
    HRESULT status = ND_SUCCESS;
    if (completion.status != hw::CqeStatus::kSuccess) [[unlikely]] {
      status = take_failure(completion.status, completion.kind, completion.qpn);
    } else if (completion.solicited) [[unlikely]] {
      ++polled_solicited_;
    }
    *results++ = result_of(completion, status);
  });
  if (taken == 0) [[unlikely]]
    process_->polled_in_vain();
  return static_cast<ULONG>(taken);
}

/// The connection of a queue pair whose request has failed is over (decisions 7). Its peer hears of it when the client
/// looks for more, or waits.
HRESULT CompletionQueue::take_failure(hw::CqeStatus status, umd::RequestKind kind, std::uint32_t qpn) {
  ++polled_solicited_;
  if (status != hw::CqeStatus::kWrFlushErr) {
    process_->events().tell(EventTable::Of::kConnection,
                            {.event_type = static_cast<std::uint8_t>(hw::EqeType::kQpFatal), .number = qpn});
  }
  return failure_status(status, kind);
}

void CompletionQueue::on_final_release() {
  process_->events().unsubscribe(EventTable::Of::kCq, core_->cqn());
  finish_all(ND_CANCELED);
}

}  // namespace rnic::nd2
