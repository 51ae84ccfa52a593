#include "driver/ndk/completion_queue.hpp"

#include <arpa/inet.h>

namespace rnic::ndk {
namespace {

constexpr ULONG kMostModeration = 0xFFFF;

hw::CqArm arm_of(ULONG type) {
  switch (type) {
    case NDK_CQ_NOTIFY_ANY: return hw::CqArm::kAny;
    case NDK_CQ_NOTIFY_SOLICITED: return hw::CqArm::kSolicited;
    default: return hw::CqArm::kErrors;
  }
}
static_assert(hw::CqArm::kNone < hw::CqArm::kErrors && hw::CqArm::kErrors < hw::CqArm::kSolicited &&
              hw::CqArm::kSolicited < hw::CqArm::kAny);

}  // namespace

const NDK_CQ_DISPATCH CompletionQueue::kDispatch{.NdkCloseCq = close_object,
                                                 .NdkQueryExtensionInterface = query_extension,
                                                 .NdkResizeCq = resize,
                                                 .NdkArmCq = arm,
                                                 .NdkGetCqResults = get_results<NDK_RESULT>,
                                                 .NdkControlCqInterruptModeration = moderate,
                                                 .NdkGetCqResultsEx = get_results<NDK_RESULT_EX>};

CompletionQueue::CompletionQueue(Adapter& adapter, std::shared_ptr<umd::CompletionQueue> core,
                                 NDK_FN_CQ_NOTIFICATION_CALLBACK notification, PVOID context)
    : ObjectOf(adapter.worker(), NdkObjectTypeCq, kDispatch),
      adapter_(adapter),
      core_(std::move(core)),
      notification_(notification),
      notification_context_(context),
      notify_(*this, [this] { notify(); }),
      moderate_(*this, [this] { static_cast<void>(core_->moderate(moderation_count_, moderation_interval_).ok()); }),
      events_(std::make_shared<Listening>([this](const hw::Eqe& eqe) { take_event(eqe); })) {
  adapter_.context()->events().subscribe(EventTable::Of::kCq, core_->cqn(), events_);
  need(adapter);
}

NTSTATUS CompletionQueue::create(NDK_ADAPTER* face, ULONG depth, NDK_FN_CQ_NOTIFICATION_CALLBACK notification,
                                 PVOID notification_context, GROUP_AFFINITY*, NDK_FN_CREATE_COMPLETION completion,
                                 PVOID context, NDK_CQ**) {
  auto& adapter = Adapter::of(face);
  if (depth == 0 || depth > adapter.info().MaxCqDepth) return STATUS_INVALID_PARAMETER;
  return pend_creation(
      adapter, completion, context, [&adapter, depth, notification, notification_context](NDK_OBJECT_HEADER*& header) {
        const auto made = or_out_of_memory([&]() -> Result<void> {
          auto core = umd::CompletionQueue::create(adapter.context(), 2 * depth);
          if (!core) return core.error();
          header = (new CompletionQueue(adapter, core.take(), notification, notification_context))->header();
          return {};
        });
        return made ? STATUS_SUCCESS : control_status(made.error());
      });
}

NTSTATUS CompletionQueue::resize(NDK_CQ* face, ULONG depth, NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& cq = of(face);
  if (completion == nullptr || depth == 0 || depth > cq.adapter_.info().MaxCqDepth) return STATUS_INVALID_PARAMETER;
  return pend(cq, completion, context, [&cq, depth] {
    // Decisions 28, by what was asked for.
    if (cq.core_->waiting() > depth) return STATUS_BUFFER_OVERFLOW;
    const auto done = cq.core_->resize(2 * depth);
    if (done) return STATUS_SUCCESS;
    // Overrun: as the notification says (decisions 26).
    return done.error() == Error::kInvalidState ? STATUS_BUFFER_OVERFLOW : control_status(done.error());
  });
}

/// The 3 x 3 table: the stronger of the two kinds.
VOID CompletionQueue::arm(NDK_CQ* face, ULONG type) {
  auto& cq = of(face);
  const hw::CqArm kind = arm_of(type);
  bool ask = false;
  {
    const std::lock_guard lock(cq.lock_);
    if (cq.state_ != STATUS_SUCCESS) {
      cq.fire();
      return;
    }
    const bool claims = cq.unclaimed_event_ &&
                        (kind == hw::CqArm::kAny || (kind == hw::CqArm::kSolicited && cq.core_->solicited() != 0));
    if (claims) {
      cq.unclaimed_event_ = false;
      cq.fire();
      return;
    }
    ask = kind > cq.armed_;
    if (ask) cq.armed_ = kind;
  }
  if (ask) cq.core_->arm(kind);
}

void CompletionQueue::take_event(const hw::Eqe& eqe) {
  const std::lock_guard lock(lock_);
  switch (static_cast<hw::EqeType>(eqe.event_type)) {
    case hw::EqeType::kCqError: state_ = STATUS_BUFFER_OVERFLOW; break;
    case hw::EqeType::kDeviceFatal: state_ = STATUS_INTERNAL_ERROR; break;
    default:
      // For no entry at all is who waits for errors of the queue.
      if (armed_ <= hw::CqArm::kErrors) {
        unclaimed_event_ = true;
        return;
      }
  }
  if (armed_ == hw::CqArm::kNone) return;
  armed_ = hw::CqArm::kNone;
  fire();
}

/// With the lock held. One that is due is called once, whatever comes meanwhile.
void CompletionQueue::fire() {
  ++fires_;
  notify_.ask();
}

void CompletionQueue::notify() {
  for (;;) {
    NTSTATUS status = STATUS_SUCCESS;
    {
      const std::lock_guard lock(lock_);
      if (fires_ == 0) return;
      --fires_;
      status = state_;
    }
    if (notification_ != nullptr) notification_(notification_context_, status);
  }
}

template <typename Result>
ULONG CompletionQueue::get_results(NDK_CQ* face, Result results[], ULONG count) {
  auto& cq = of(face);
  ULONG written = 0;
  while (written < count) {
    const std::size_t taken = cq.core_->poll(count - written, [&](const umd::Completion& completion) {
      if (cq.put(completion, results[written])) ++written;
    });
    if (taken == 0) {
      // What is kept for entries is needed no more.
      const std::lock_guard lock(cq.lock_);
      cq.kept_.clear();
      break;
    }
    if (taken < count - written) break;
  }
  return written;
}

/// False: the consumer has been told of that request already, by the failure of the Read that was half of it.
template <typename Result>
bool CompletionQueue::put(const umd::Completion& completion, Result& result) {
  auto& record = *static_cast<QpRecord*>(completion.qp_context);
  const NTSTATUS status = completion_status(completion.status, completion.kind);
  const bool received =
      completion.kind == umd::RequestKind::kReceive || completion.kind == umd::RequestKind::kReceiveWrite;
  if (!received) {
    const bool told = completion.kind == umd::RequestKind::kReadInvalidate && record.read_failed;
    record.read_failed = completion.kind == umd::RequestKind::kRead && status != STATUS_SUCCESS;
    if (told) return false;
  }
  // A failure, other than by a flush, ends the connection (decisions 7).
  if (status != STATUS_SUCCESS && status != STATUS_CANCELLED) {
    const std::lock_guard lock(record.lock);
    if (record.failed != nullptr) record.failed->ask();
  }
  const bool invalidated = received && completion.with_invalidate && status == STATUS_SUCCESS;
  if (invalidated) adapter_.invalidated(completion.immediate);
  result.Status = status;
  result.BytesTransferred = received && status == STATUS_SUCCESS ? completion.byte_count : 0;
  result.QPContext = record.context;
  result.RequestContext = reinterpret_cast<PVOID>(completion.id);
  if constexpr (requires { result.Type; }) {
    result.Type = operation_type(completion);
    result.ProviderErrorCode = status == STATUS_SUCCESS ? 0 : static_cast<ULONG>(completion.status);
    result.TypeSpecificCompletionOutput = invalidated ? htonl(completion.immediate) : 0;
  }
  return true;
}

/// The device is told on the worker.
NTSTATUS CompletionQueue::moderate(NDK_CQ* face, ULONG interval_us, ULONG count) {
  auto& cq = of(face);
  if (interval_us > kMostModeration || count > kMostModeration) return STATUS_INVALID_PARAMETER;
  {
    const std::lock_guard lock(cq.lock_);
    cq.moderation_interval_ = static_cast<std::uint16_t>(interval_us);
    cq.moderation_count_ = static_cast<std::uint16_t>(count);
  }
  cq.moderate_.ask();
  return STATUS_SUCCESS;
}

void CompletionQueue::keep(std::shared_ptr<QpRecord> record) {
  std::vector<std::shared_ptr<QpRecord>> kept;
  kept.reserve(kept_.size() + 1);
  const std::lock_guard lock(lock_);
  kept.insert(kept.end(), kept_.begin(), kept_.end());
  kept.push_back(std::move(record));
  kept_.swap(kept);
}

void CompletionQueue::end() {
  adapter_.context()->events().unsubscribe(EventTable::Of::kCq, core_->cqn());
  events_->stop();
}

}  // namespace rnic::ndk
