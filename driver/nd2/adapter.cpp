#include "driver/nd2/adapter.hpp"

#include "driver/nd2/addresses.hpp"
#include "driver/nd2/completion_queue.hpp"
#include "driver/nd2/connector.hpp"
#include "driver/nd2/listener.hpp"
#include "driver/nd2/memory_region.hpp"
#include "driver/nd2/memory_window.hpp"
#include "driver/nd2/queue_pair.hpp"
#include "driver/nd2/shared_receive_queue.hpp"
#include "driver/nd2/status.hpp"

namespace rnic::nd2 {
namespace {

// Above this a Read or Write of its own costs less than copying through a Send.
constexpr ULONG kLargeRequestThreshold = 65536;

ND2_ADAPTER_INFO describe_adapter(const umd::ProcessContext& process, ULONG version) {
  const Limits& limits = process.limits();
  return {.InfoVersion = version,
          .VendorId = limits.vendor_id,
          .DeviceId = limits.device_id,
          .AdapterId = process.mac(),
          .MaxRegistrationSize = limits.max_region,
          .MaxWindowSize = limits.max_region,
          .MaxInitiatorSge = limits.max_sge,
          .MaxReceiveSge = limits.max_sge,
          .MaxReadSge = limits.max_sge,
          .MaxTransferLength = limits.max_message,
          .MaxInlineDataSize = limits.max_inline,
          .MaxInboundReadLimit = limits.max_rd_atomic,
          .MaxOutboundReadLimit = limits.max_rd_atomic,
          .MaxReceiveQueueDepth = limits.max_queue_depth,
          .MaxInitiatorQueueDepth = limits.max_queue_depth,
          .MaxSharedReceiveQueueDepth = limits.max_srq_depth,
          .MaxCompletionQueueDepth = umd::CompletionQueue::max_entries(limits),
          .InlineRequestThreshold = limits.max_inline,
          .LargeRequestThreshold = kLargeRequestThreshold,
          .MaxCallerData = kMaxCallerData,
          .MaxCalleeData = kMaxCalleeData,
          .AdapterFlags = ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED | ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED |
                          ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED};
}

}  // namespace

HRESULT open_adapter(DeviceNode& node, const std::vector<sockaddr_storage>& addresses, REFIID iid, VOID** adapter) {
  return guarded(
      [&] {
        auto process = umd::ProcessContext::open(node);
        if (!process) return control_status(process.error(), ND_NO_MEMORY);
        return Adapter::hand_out(std::make_shared<Adapter>(process.take(), addresses), iid, adapter);
      },
      ND_NO_MEMORY);
}

HRESULT Adapter::CreateOverlappedFile(HANDLE* file) {
  return guarded(
      [&] {
        if (file == nullptr) return ND_INVALID_PARAMETER_1;
        if (!process_->usable()) return ND_DEVICE_REMOVED;
        *file = open_handle(std::make_shared<OverlappedFile>());
        return ND_SUCCESS;
      },
      ND_NO_MEMORY);
}

/// Decisions 38 for the version; section 6 of the interface reference for the sizes.
HRESULT Adapter::Query(ND2_ADAPTER_INFO* info, ULONG* size) {
  if (size == nullptr) return ND_INVALID_PARAMETER_2;
  if (info == nullptr && *size != 0) return ND_INVALID_PARAMETER_1;
  if (*size < sizeof(ND2_ADAPTER_INFO)) {
    *size = sizeof(ND2_ADAPTER_INFO);
    return ND_BUFFER_OVERFLOW;
  }
  if (info->InfoVersion != ND_VERSION_1 && info->InfoVersion != ND_VERSION_2) return ND_INVALID_PARAMETER_1;
  *info = describe_adapter(*process_, info->InfoVersion);
  *size = sizeof(ND2_ADAPTER_INFO);
  return ND_SUCCESS;
}

HRESULT Adapter::QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* size) {
  if (size == nullptr) return ND_INVALID_PARAMETER_2;
  SIZE_T bytes = *size;
  const HRESULT status = write_address_list(addresses_, list, bytes);
  *size = static_cast<ULONG>(bytes);
  return status;
}

/// There is one group of processors; an affinity that can't be had is not taken notice of.
HRESULT Adapter::CreateCompletionQueue(REFIID iid, HANDLE file, ULONG depth, USHORT group, KAFFINITY affinity,
                                       VOID** queue) {
  return guarded(
      [&] {
        if (queue == nullptr) return E_POINTER;
        *queue = nullptr;
        if (iid != CompletionQueue::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
        auto overlapped_file = find_handle_as<OverlappedFile>(file);
        if (overlapped_file == nullptr) return ND_INVALID_HANDLE;
        if (depth == 0 || depth > umd::CompletionQueue::max_entries(process_->limits())) return ND_INVALID_PARAMETER_3;
        if (!process_->usable()) return ND_DEVICE_REMOVED;
        auto core = umd::CompletionQueue::create(process_, depth, 0, group == 0 ? affinity : 0);
        if (!core) return control_status(core.error(), ND_NO_MEMORY);
        auto object = std::make_shared<CompletionQueue>(process_, overlapped_file, core.take());
        overlapped_file->add(object);
        process_->events().subscribe(EventTable::Of::kCq, object->core()->cqn(), object);
        // What failed since has told its sinks already.
        if (!process_->alive()) return ND_DEVICE_REMOVED;
        return CompletionQueue::hand_out(std::move(object), iid, queue);
      },
      ND_NO_MEMORY);
}

HRESULT Adapter::CreateMemoryRegion(REFIID iid, HANDLE file, VOID** region) {
  return create_on_file<MemoryRegion>(iid, file, region);
}

HRESULT Adapter::CreateQueuePair(REFIID iid, IUnknown* receive_cq, IUnknown* initiator_cq, VOID* context,
                                 ULONG receive_depth, ULONG initiator_depth, ULONG receive_sges, ULONG initiator_sges,
                                 ULONG inline_bytes, VOID** pair) {
  return guarded([&] {
    if (pair == nullptr) return E_POINTER;
    *pair = nullptr;
    if (iid != QueuePair::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
    const auto receive = CompletionQueue::find(receive_cq);
    if (receive == nullptr || receive->process() != process_) return ND_INVALID_PARAMETER_2;
    const auto initiator = CompletionQueue::find(initiator_cq);
    if (initiator == nullptr || initiator->process() != process_) return ND_INVALID_PARAMETER_3;
    const Limits& limits = process_->limits();
    if (receive_depth > limits.max_queue_depth) return ND_INVALID_PARAMETER_5;
    if (initiator_depth > limits.max_queue_depth) return ND_INVALID_PARAMETER_6;
    if (receive_sges > limits.max_sge) return ND_INVALID_PARAMETER_7;
    if (initiator_sges > limits.max_sge) return ND_INVALID_PARAMETER_8;
    if (inline_bytes > limits.max_inline) return ND_INVALID_PARAMETER_9;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    auto core = umd::QueuePair::create_idle(process_, {.send_cq = initiator->core(),
                                                       .receive_cq = receive->core(),
                                                       .capacity = {.send_depth = initiator_depth,
                                                                    .receive_depth = receive_depth,
                                                                    .send_segments = initiator_sges,
                                                                    .receive_segments = receive_sges,
                                                                    .inline_bytes = inline_bytes},
                                                       .context = context});
    if (!core) return control_status(core.error());
    return QueuePair::hand_out(std::make_shared<QueuePair>(core.take()), iid, pair);
  });
}

HRESULT Adapter::CreateMemoryWindow(REFIID iid, VOID** window) {
  return guarded([&] {
    if (window == nullptr) return E_POINTER;
    *window = nullptr;
    if (iid != MemoryWindow::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    auto created = process_->create_mw({});
    if (!created) return control_status(created.error());
    return MemoryWindow::hand_out(std::make_shared<MemoryWindow>(process_, created.take()), iid, window);
  });
}

HRESULT Adapter::CreateSharedReceiveQueue(REFIID iid, HANDLE file, ULONG depth, ULONG sges, ULONG threshold,
                                          USHORT group, KAFFINITY affinity, VOID** queue) {
  return guarded(
      [&] {
        if (queue == nullptr) return E_POINTER;
        *queue = nullptr;
        if (iid != SharedReceiveQueue::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
        auto overlapped_file = find_handle_as<OverlappedFile>(file);
        if (overlapped_file == nullptr) return ND_INVALID_HANDLE;
        if (process_->limits().max_srq == 0) return ND_NOT_SUPPORTED;
        if (depth == 0 || depth > process_->limits().max_srq_depth) return ND_INVALID_PARAMETER_3;
        if (sges > process_->limits().max_sge) return ND_INVALID_PARAMETER_4;
        if (threshold > depth) return ND_INVALID_PARAMETER_5;
        if (!process_->usable()) return ND_DEVICE_REMOVED;
        auto core = umd::SharedReceiveQueue::create(process_, depth, sges, 0, group == 0 ? affinity : 0);
        if (!core) return control_status(core.error(), ND_NO_MEMORY);
        auto object =
            std::make_shared<SharedReceiveQueue>(overlapped_file, core.take(), static_cast<std::uint16_t>(threshold));
        overlapped_file->add(object);
        process_->events().subscribe(EventTable::Of::kSrq, object->core()->srqn(), object);
        if (!process_->alive()) return ND_DEVICE_REMOVED;
        return SharedReceiveQueue::hand_out(std::move(object), iid, queue);
      },
      ND_NO_MEMORY);
}

HRESULT Adapter::CreateQueuePairWithSrq(REFIID iid, IUnknown* receive_cq, IUnknown* initiator_cq, IUnknown* srq,
                                        VOID* context, ULONG initiator_depth, ULONG initiator_sges, ULONG inline_bytes,
                                        VOID** pair) {
  return guarded([&] {
    if (pair == nullptr) return E_POINTER;
    *pair = nullptr;
    if (iid != QueuePair::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
    const Limits& limits = process_->limits();
    if (limits.max_srq == 0) return ND_NOT_SUPPORTED;
    const auto receive = CompletionQueue::find(receive_cq);
    if (receive == nullptr || receive->process() != process_) return ND_INVALID_PARAMETER_2;
    const auto initiator = CompletionQueue::find(initiator_cq);
    if (initiator == nullptr || initiator->process() != process_) return ND_INVALID_PARAMETER_3;
    const auto shared = SharedReceiveQueue::find(srq);
    if (shared == nullptr || shared->core()->process() != process_) return ND_INVALID_PARAMETER_4;
    if (initiator_depth > limits.max_queue_depth) return ND_INVALID_PARAMETER_6;
    if (initiator_sges > limits.max_sge) return ND_INVALID_PARAMETER_7;
    if (inline_bytes > limits.max_inline) return ND_INVALID_PARAMETER_8;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    auto core = umd::QueuePair::create_idle(
        process_,
        {.send_cq = initiator->core(),
         .receive_cq = receive->core(),
         .shared_receives = shared->core(),
         .capacity = {.send_depth = initiator_depth, .send_segments = initiator_sges, .inline_bytes = inline_bytes},
         .context = context});
    if (!core) return control_status(core.error());
    return QueuePair::hand_out(std::make_shared<QueuePair>(core.take()), iid, pair);
  });
}

HRESULT Adapter::CreateConnector(REFIID iid, HANDLE file, VOID** connector) {
  return create_on_file<Connector>(iid, file, connector);
}

HRESULT Adapter::CreateListener(REFIID iid, HANDLE file, VOID** listener) {
  return create_on_file<Listener>(iid, file, listener);
}

/// Objects that take nothing of the device before they are used.
template <typename Object>
HRESULT Adapter::create_on_file(REFIID iid, HANDLE file, VOID** object) {
  return guarded(
      [&] {
        if (object == nullptr) return E_POINTER;
        *object = nullptr;
        auto overlapped_file = find_handle_as<OverlappedFile>(file);
        if (overlapped_file == nullptr) return ND_INVALID_HANDLE;
        if (!process_->usable()) return ND_DEVICE_REMOVED;
        auto made = std::make_shared<Object>(process_, overlapped_file);
        overlapped_file->add(made);
        return Object::hand_out(std::move(made), iid, object);
      },
      ND_NO_MEMORY);
}

}  // namespace rnic::nd2
