#include "driver/ndk/queue_pair.hpp"

#include <arpa/inet.h>

#include "driver/ndk/connector.hpp"
#include "driver/ndk/memory_region.hpp"
#include "driver/ndk/memory_window.hpp"
#include "driver/ndk/segments.hpp"
#include "driver/ndk/shared_receive_queue.hpp"

namespace rnic::ndk {
namespace {

constexpr ULONG kCommonFlags = NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_DEFER;
constexpr ULONG kSendFlags = kCommonFlags | NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT | NDK_OP_FLAG_INLINE;
constexpr ULONG kReadFlags = kCommonFlags | NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE;
constexpr ULONG kWriteFlags = kCommonFlags | NDK_OP_FLAG_INLINE;
// Their write right is ALLOW_REMOTE_WRITE, whole.
constexpr ULONG kBindFlags = kCommonFlags | NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE;
constexpr ULONG kFastRegisterFlags = kBindFlags | NDK_OP_FLAG_RDMA_READ_SINK;
constexpr ULONG kRemoteWriteFlag = NDK_OP_FLAG_ALLOW_REMOTE_WRITE & ~NDK_OP_FLAG_ALLOW_LOCAL_WRITE;

umd::MemoryOptions options_of(PVOID context, ULONG flags) {
  return {.id = reinterpret_cast<std::uintptr_t>(context),
          .silent = (flags & NDK_OP_FLAG_SILENT_SUCCESS) != 0,
          .fence = (flags & NDK_OP_FLAG_READ_FENCE) != 0,
          .defer = (flags & NDK_OP_FLAG_DEFER) != 0};
}

}  // namespace

const NDK_QP_DISPATCH QueuePair::kDispatch{.NdkCloseQp = close_object,
                                           .NdkQueryExtensionInterface = query_extension,
                                           .NdkFlush = flush,
                                           .NdkSend = send,
                                           .NdkReceive = receive,
                                           .NdkBind = bind,
                                           .NdkFastRegister = fast_register,
                                           .NdkInvalidate = invalidate,
                                           .NdkRead = read,
                                           .NdkWrite = write,
                                           .NdkSendAndInvalidate = send_and_invalidate};

QueuePair::QueuePair(const Spec& spec, std::shared_ptr<umd::QueuePair> core, std::shared_ptr<QpRecord> record)
    : ObjectOf(spec.pd->worker(), NdkObjectTypeQp, kDispatch),
      pd_(*spec.pd),
      receive_cq_(*spec.receive_cq),
      initiator_cq_(*spec.initiator_cq),
      srq_(spec.srq),
      core_(std::move(core)),
      record_(std::move(record)),
      flush_(*this,
             [this] {
               static_cast<void>(core_->flush().ok());
               if (connector_ != nullptr) connector_->queue_pair_failed();
             }),
      failed_(*this, [this] {
        if (connector_ != nullptr) connector_->queue_pair_failed();
      }) {
  record_->failed = &failed_;
  need(pd_);
  need(receive_cq_);
  need(initiator_cq_);
  if (srq_ != nullptr) need(*srq_);
}

NTSTATUS QueuePair::create(NDK_PD* pd, NDK_CQ* receive_cq, NDK_CQ* initiator_cq, PVOID qp_context, ULONG receive_depth,
                           ULONG initiator_depth, ULONG receive_sge, ULONG initiator_sge, ULONG inline_bytes,
                           NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP**) {
  return create({.pd = &ProtectionDomain::of(pd),
                 .receive_cq = &CompletionQueue::of(receive_cq),
                 .initiator_cq = &CompletionQueue::of(initiator_cq),
                 .srq = nullptr,
                 .context = qp_context,
                 .capacity = {initiator_depth, receive_depth, initiator_sge, receive_sge, inline_bytes}},
                completion, context);
}

NTSTATUS QueuePair::create_with_srq(NDK_PD* pd, NDK_CQ* receive_cq, NDK_CQ* initiator_cq, NDK_SRQ* srq,
                                    PVOID qp_context, ULONG initiator_depth, ULONG initiator_sge, ULONG inline_bytes,
                                    NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP**) {
  return create({.pd = &ProtectionDomain::of(pd),
                 .receive_cq = &CompletionQueue::of(receive_cq),
                 .initiator_cq = &CompletionQueue::of(initiator_cq),
                 .srq = &SharedReceiveQueue::of(srq),
                 .context = qp_context,
                 .capacity = {initiator_depth, 0, initiator_sge, 0, inline_bytes}},
                completion, context);
}

NTSTATUS QueuePair::create(const Spec& spec, NDK_FN_CREATE_COMPLETION completion, PVOID context) {
  const NDK_ADAPTER_INFO& info = spec.pd->adapter().info();
  const umd::QueueCapacity& capacity = spec.capacity;
  if (capacity.send_depth > info.MaxInitiatorQueueDepth || capacity.receive_depth > info.MaxReceiveQueueDepth ||
      capacity.send_segments > info.MaxInitiatorRequestSge || capacity.receive_segments > info.MaxReceiveRequestSge ||
      capacity.inline_bytes > info.MaxInlineDataSize) {
    return STATUS_INVALID_PARAMETER;
  }
  return pend_creation(*spec.pd, completion, context,
                       [spec](NDK_OBJECT_HEADER*& header) { return make(spec, header); });
}

NTSTATUS QueuePair::make(const Spec& spec, NDK_OBJECT_HEADER*& header) {
  const auto made = or_out_of_memory([&]() -> Result<void> {
    auto record = std::make_shared<QpRecord>();
    record->context = spec.context;
    umd::QueueCapacity capacity = spec.capacity;
    capacity.send_depth *= 2;  // a Read that invalidates takes two
    auto core = umd::QueuePair::create_idle(
        spec.pd->adapter().context(),
        {.send_cq = spec.initiator_cq->core(),
         .receive_cq = spec.receive_cq->core(),
         .pd = spec.pd->handle(),
         .shared_receives = spec.srq != nullptr ? spec.srq->core() : std::shared_ptr<umd::SharedReceiveQueue>(),
         .capacity = capacity,
         .context = record.get(),
         .on_event = {},
         .fast_register = true});
    if (!core) return core.error();
    header = (new QueuePair(spec, core.take(), std::move(record)))->header();
    return {};
  });
  return made ? STATUS_SUCCESS : control_status(made.error());
}

VOID QueuePair::flush(NDK_QP* qp) { of(qp).flush_.ask(); }

bool QueuePair::connected() const { return !disconnected_ && core_->state() == umd::QueuePair::State::kConnected; }

NTSTATUS QueuePair::finish(const Result<void>& posted) {
  return posted ? STATUS_SUCCESS : refuse(posting_status(posted.error()));
}

NTSTATUS QueuePair::refuse(NTSTATUS status) {
  core_->ring_deferred();
  return status;
}

NTSTATUS QueuePair::send(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, ULONG flags) {
  return of(qp).post({.opcode = hw::WqeOpcode::kSend, .known_flags = kSendFlags}, context, sgl, count, flags);
}

NTSTATUS QueuePair::send_and_invalidate(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, ULONG flags,
                                        UINT32 remote_token) {
  return of(qp).post(
      {.opcode = hw::WqeOpcode::kSendInvalidate, .known_flags = kSendFlags, .immediate = ntohl(remote_token)}, context,
      sgl, count, flags);
}

NTSTATUS QueuePair::read(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, UINT64 remote_address,
                         UINT32 remote_token, ULONG flags) {
  return of(qp).post({.opcode = hw::WqeOpcode::kRead,
                      .known_flags = kReadFlags,
                      .remote_address = remote_address,
                      .remote_token = remote_token},
                     context, sgl, count, flags);
}

NTSTATUS QueuePair::write(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, UINT64 remote_address,
                          UINT32 remote_token, ULONG flags) {
  return of(qp).post({.opcode = hw::WqeOpcode::kWrite,
                      .known_flags = kWriteFlags,
                      .remote_address = remote_address,
                      .remote_token = remote_token},
                     context, sgl, count, flags);
}

NTSTATUS QueuePair::post(const Operation& operation, PVOID context, const NDK_SGE* sgl, ULONG count, ULONG flags) {
  if ((flags & ~operation.known_flags) != 0 || (sgl == nullptr && count != 0)) return refuse(STATUS_INVALID_PARAMETER);
  if (!connected()) return refuse(STATUS_CONNECTION_INVALID);
  const Segments segments(adapter().logical_memory(), pd_.handle(), sgl, count);
  const umd::SendRequest request{.opcode = operation.opcode,
                                 .id = reinterpret_cast<std::uintptr_t>(context),
                                 .segments = segments.list(),
                                 .remote_address = operation.remote_address,
                                 .remote_key = ntohl(operation.remote_token),
                                 .immediate = operation.immediate,
                                 .silent = (flags & NDK_OP_FLAG_SILENT_SUCCESS) != 0,
                                 .fence = (flags & NDK_OP_FLAG_READ_FENCE) != 0,
                                 .solicited = (flags & NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT) != 0,
                                 .inline_data = (flags & NDK_OP_FLAG_INLINE) != 0,
                                 .defer = (flags & NDK_OP_FLAG_DEFER) != 0};
  if ((flags & NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE) != 0 && count != 0)
    return post_read_invalidate(request, flags, sgl[0]);
  return finish(core_->post_send(request));
}

/// The Read is silent, and behind it goes the invalidation of its first segment's token, which begins when the Read is
/// complete: the consumer sees one request, which completes with the second of the two, or with the Read if that fails.
NTSTATUS QueuePair::post_read_invalidate(const umd::SendRequest& read, ULONG flags, const NDK_SGE& sink) {
  if (!core_->has_room(2)) return refuse(STATUS_NO_MORE_ENTRIES);
  umd::SendRequest first = read;
  first.silent = first.defer = true;
  if (auto posted = core_->post_send(first); !posted) return finish(posted);
  const auto id = reinterpret_cast<PVOID>(read.id);
  auto second = umd::invalidate_request(sink.MemoryRegionToken, options_of(id, flags & ~NDK_OP_FLAG_READ_FENCE));
  second.of_read = true;
  second.watch = adapter().watch_of(sink.MemoryRegionToken);
  return finish(core_->post_memory(second));
}

NTSTATUS QueuePair::receive(NDK_QP* face, PVOID context, const NDK_SGE* sgl, ULONG count) {
  auto& qp = of(face);
  if (sgl == nullptr && count != 0) return STATUS_INVALID_PARAMETER;
  const Segments segments(qp.adapter().logical_memory(), qp.pd_.handle(), sgl, count);
  const auto posted =
      qp.core_->post_receive({.id = reinterpret_cast<std::uintptr_t>(context), .segments = segments.list()});
  return posted ? STATUS_SUCCESS : posting_status(posted.error());
}

/// Decisions 17 to 21: what can be known is refused at once.
NTSTATUS QueuePair::bind(NDK_QP* face, PVOID context, NDK_MR* mr, NDK_MW* mw, const void* address, SIZE_T length,
                         ULONG flags) {
  auto& qp = of(face);
  const bool write = (flags & kRemoteWriteFlag) != 0;
  if (mr == nullptr || mw == nullptr || (flags & ~kBindFlags) != 0 ||
      write != ((flags & NDK_OP_FLAG_ALLOW_LOCAL_WRITE) != 0)) {
    return qp.refuse(STATUS_INVALID_PARAMETER);
  }
  if (!qp.connected()) return qp.refuse(STATUS_CONNECTION_INVALID);
  auto& region = MemoryRegion::of(mr);
  auto& window = MemoryWindow::of(mw);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (auto good = region.check_bind(at, length, write); !good) return qp.finish(good);
  return qp.finish(umd::post_bind(*qp.core_, window.kernel_mw(),
                                  {.region_key = region.key(),
                                   .address = at,
                                   .length = length,
                                   .remote_read = (flags & NDK_OP_FLAG_ALLOW_REMOTE_READ) != 0,
                                   .remote_write = write},
                                  options_of(context, flags)));
}

/// Decisions 21, 22 and 39.
NTSTATUS QueuePair::fast_register(NDK_QP* face, PVOID context, NDK_MR* mr, ULONG page_count,
                                  const NDK_LOGICAL_ADDRESS* pages, ULONG fbo, SIZE_T length, PVOID base, ULONG flags) {
  auto& qp = of(face);
  const bool local_write = (flags & NDK_OP_FLAG_ALLOW_LOCAL_WRITE) != 0;
  if (mr == nullptr || pages == nullptr || (flags & ~kFastRegisterFlags) != 0)
    return qp.refuse(STATUS_INVALID_PARAMETER);
  auto& region = MemoryRegion::of(mr);
  if (!region.fast()) return qp.refuse(STATUS_INVALID_DEVICE_REQUEST);
  if (!qp.connected()) return qp.refuse(STATUS_CONNECTION_INVALID);
  const FastRange range{.pages = {pages, page_count},
                        .first_offset = fbo,
                        .length = length,
                        .base = reinterpret_cast<std::uintptr_t>(base),
                        .local_write = local_write,
                        .read_sink = (flags & NDK_OP_FLAG_RDMA_READ_SINK) != 0,
                        .remote_read = (flags & NDK_OP_FLAG_ALLOW_REMOTE_READ) != 0,
                        .remote_write = (flags & kRemoteWriteFlag) != 0};
  const std::uint32_t room = qp.core_->inline_pages();
  auto prepared = region.prepare(range, room);
  if (!prepared && prepared.error() == Error::kOutOfResources) {
    // Those that made no completion may be over, too.
    qp.core_->settle();
    prepared = region.prepare(range, room);
  }
  if (!prepared) return qp.refuse(control_status(prepared.error()));
  auto request = umd::fast_register_request(*prepared, range, options_of(context, flags));
  request.watch = FastKeys::of_registration(region.keys());
  const auto posted = qp.core_->post_memory(request);
  if (posted) {
    region.posted(*prepared, range);
  } else {
    region.not_posted(*prepared);
  }
  return qp.finish(posted);
}

NTSTATUS QueuePair::invalidate(NDK_QP* face, PVOID context, NDK_OBJECT_HEADER* object, ULONG flags) {
  auto& qp = of(face);
  if (object == nullptr || (flags & ~kCommonFlags) != 0) return qp.refuse(STATUS_INVALID_PARAMETER);
  const bool window = object->ObjectType == NdkObjectTypeMw;
  if (!window && (object->ObjectType != NdkObjectTypeMr || !MemoryRegion::of(object).fast()))
    return qp.refuse(STATUS_INVALID_DEVICE_REQUEST);
  if (!qp.connected()) return qp.refuse(STATUS_CONNECTION_INVALID);
  auto request = umd::invalidate_request(
      window ? MemoryWindow::of(object).kernel_mw().key() : MemoryRegion::of(object).key(), options_of(context, flags));
  if (!window) request.watch = FastKeys::of_invalidation(MemoryRegion::of(object).keys());
  return qp.finish(qp.core_->post_memory(request));
}

void QueuePair::end() {
  {
    const std::lock_guard lock(record_->lock);
    record_->failed = nullptr;
  }
  static_cast<void>(core_->close().ok());
  static_cast<void>(or_out_of_memory([&]() -> Result<void> {
                      initiator_cq_.keep(record_);
                      if (&receive_cq_ != &initiator_cq_) receive_cq_.keep(record_);
                      return {};
                    }).ok());
}

}  // namespace rnic::ndk
