#include "driver/ndk/shared_receive_queue.hpp"

#include "driver/ndk/segments.hpp"

namespace rnic::ndk {

const NDK_SRQ_DISPATCH SharedReceiveQueue::kDispatch{.NdkCloseSrq = close_object,
                                                     .NdkQueryExtensionInterface = query_extension,
                                                     .NdkModifySrq = modify,
                                                     .NdkSrqReceive = receive};

SharedReceiveQueue::SharedReceiveQueue(ProtectionDomain& pd, std::shared_ptr<umd::SharedReceiveQueue> core,
                                       const Spec& spec)
    : ObjectOf(pd.worker(), NdkObjectTypeSrq, kDispatch),
      pd_(pd),
      core_(std::move(core)),
      notification_(spec.notification),
      notification_context_(spec.context),
      first_threshold_(spec.threshold),
      arm_(*this,
           [this] {
             if (const ULONG threshold = first_threshold_.exchange(0); threshold != 0)
               static_cast<void>(core_->arm(static_cast<std::uint16_t>(threshold)).ok());
           }),
      notify_(*this,
              [this] {
                if (notification_ != nullptr) notification_(notification_context_, state_);
              }),
      events_(std::make_shared<Listening>([this](const hw::Eqe& eqe) {
        const auto type = static_cast<hw::EqeType>(eqe.event_type);
        if (type == hw::EqeType::kSrqError || type == hw::EqeType::kDeviceFatal) state_ = STATUS_INTERNAL_ERROR;
        notify_.ask();
      })) {
  pd_.adapter().context()->events().subscribe(EventTable::Of::kSrq, core_->srqn(), events_);
  need(pd);
}

NTSTATUS SharedReceiveQueue::create(NDK_PD* face, ULONG depth, ULONG sge, ULONG threshold,
                                    NDK_FN_SRQ_NOTIFICATION_CALLBACK notification, PVOID notification_context,
                                    GROUP_AFFINITY*, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_SRQ**) {
  auto& pd = ProtectionDomain::of(face);
  const NDK_ADAPTER_INFO& info = pd.adapter().info();
  if (depth == 0 || depth > info.MaxSrqDepth || sge > info.MaxReceiveRequestSge || threshold > depth)
    return STATUS_INVALID_PARAMETER;
  const Spec spec{depth, sge, threshold, notification, notification_context};
  return pend_creation(pd, completion, context, [&pd, spec](NDK_OBJECT_HEADER*& header) {
    const auto made = or_out_of_memory([&]() -> Result<void> {
      auto core = umd::SharedReceiveQueue::create(pd.adapter().context(), spec.depth, spec.sge, pd.handle());
      if (!core) return core.error();
      header = (new SharedReceiveQueue(pd, core.take(), spec))->header();
      return {};
    });
    return made ? STATUS_SUCCESS : control_status(made.error());
  });
}

NTSTATUS SharedReceiveQueue::modify(NDK_SRQ* face, ULONG depth, ULONG threshold, NDK_FN_REQUEST_COMPLETION completion,
                                    PVOID context) {
  auto& srq = of(face);
  const ULONG most = srq.pd_.adapter().info().MaxSrqDepth;
  if (completion == nullptr || depth > most || threshold > most) return STATUS_INVALID_PARAMETER;
  return pend(srq, completion, context, [&srq, depth, threshold] {
    if (depth != 0) {
      if (auto done = srq.core_->resize(depth); !done) return control_status(done.error());
    }
    if (threshold == 0) return STATUS_SUCCESS;
    srq.first_threshold_ = 0;
    const auto armed = srq.core_->arm(static_cast<std::uint16_t>(threshold));
    return armed ? STATUS_SUCCESS : control_status(armed.error());
  });
}

NTSTATUS SharedReceiveQueue::receive(NDK_SRQ* face, PVOID context, const NDK_SGE* sgl, ULONG count) {
  auto& srq = of(face);
  if (sgl == nullptr && count != 0) return STATUS_INVALID_PARAMETER;
  const Segments segments(srq.pd_.adapter().logical_memory(), srq.pd_.handle(), sgl, count);
  const auto posted = srq.core_->post({.id = reinterpret_cast<std::uintptr_t>(context), .segments = segments.list()});
  if (!posted) return posting_status(posted.error());
  if (const ULONG threshold = srq.first_threshold_; threshold != 0 && srq.core_->outstanding() >= threshold)
    srq.arm_.ask();
  return STATUS_SUCCESS;
}

void SharedReceiveQueue::end() {
  pd_.adapter().context()->events().unsubscribe(EventTable::Of::kSrq, core_->srqn());
  events_->stop();
}

}  // namespace rnic::ndk
