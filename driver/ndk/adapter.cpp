#include "driver/ndk/adapter.hpp"

#include <algorithm>
#include <cstring>

#include "driver/costs.hpp"
#include "driver/kmd/client.hpp"
#include "driver/ndk/completion_queue.hpp"
#include "driver/ndk/connector.hpp"
#include "driver/ndk/fast_keys.hpp"
#include "driver/ndk/listener.hpp"
#include "driver/ndk/protection_domain.hpp"

namespace rnic::ndk {
namespace {

// Private data of the messages of the connection manager, less the header of annex A11: REQ, and the smaller of REP and
// REJ.
constexpr ULONG kMaxCallerData = 56, kMaxCalleeData = 148;
// Above this a Read or Write of its own costs less than copying through a Send.
constexpr ULONG kLargeRequestThreshold = 65536;
// Of the most page lists that a region of 16 Ki of them can have, the number does not drop up to here: a list of so
// many pages is one page itself.
constexpr ULONG kFrmrPages = PAGE_SIZE / sizeof(NDK_LOGICAL_ADDRESS);

/// A Read that invalidates takes two places in the initiator queue, and may take two in a completion queue, so twice as
/// many are made as are asked for.
NDK_ADAPTER_INFO describe(const Limits& limits) {
  return {.Version = NDK_VERSION_1_2,
          .VendorId = limits.vendor_id,
          .DeviceId = limits.device_id,
          .MaxRegistrationSize = limits.max_region,
          .MaxWindowSize = limits.max_region,
          .FRMRPageCount = std::min(kFrmrPages, limits.max_fast_pages),
          .MaxInitiatorRequestSge = limits.max_sge,
          .MaxReceiveRequestSge = limits.max_sge,
          .MaxReadRequestSge = limits.max_sge,
          .MaxTransferLength = limits.max_message,
          .MaxInlineDataSize = limits.max_inline,
          .MaxInboundReadLimit = limits.max_rd_atomic,
          .MaxOutboundReadLimit = limits.max_rd_atomic,
          .MaxReceiveQueueDepth = limits.max_queue_depth,
          .MaxInitiatorQueueDepth = limits.max_queue_depth / 2,
          .MaxSrqDepth = limits.max_srq_depth,
          .MaxCqDepth = umd::CompletionQueue::max_entries(limits) / 2,
          .LargeRequestThreshold = kLargeRequestThreshold,
          .MaxCallerData = kMaxCallerData,
          .MaxCalleeData = kMaxCalleeData,
          .AdapterFlags = NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED | NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED |
                          NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED |
                          NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED | NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED |
                          NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED,
          .RdmaTechnology = NdkRoCEv2};
}

/// The end of a mapping, which lets time pass; made with it, so that ReleaseLAM needs no memory.
struct Lam final : Work {
  Lam(Adapter& of, LogicalMemory::Mapping& what) : adapter(of), mapping(what) {}
  void run() override {
    Adapter& of = adapter;
    of.logical_memory().release(mapping);
    delete this;
    of.release();
  }
  Adapter& adapter;
  LogicalMemory::Mapping& mapping;
};

}  // namespace

const NDK_ADAPTER_DISPATCH Adapter::kDispatch{.NdkQueryExtensionInterface = query_extension,
                                              .NdkQueryAdapterInfo = query_info,
                                              .NdkCreateCq = CompletionQueue::create,
                                              .NdkCreatePd = ProtectionDomain::create,
                                              .NdkCreateSharedEndpoint = create_shared_endpoint,
                                              .NdkCreateConnector = Connector::create,
                                              .NdkCreateListener = Listener::create,
                                              .NdkBuildLAM = build_lam,
                                              .NdkReleaseLAM = release_lam};

Adapter::Adapter(kmd::KernelDevice& kernel, std::shared_ptr<umd::ProcessContext> context,
                 std::unique_ptr<Worker> worker)
    : ObjectOf(*worker, NdkObjectTypeAdapter, kDispatch),
      kernel_(kernel),
      context_(std::move(context)),
      own_worker_(std::move(worker)),
      info_(describe(context_->limits())),
      logical_memory_(std::make_unique<LogicalMemory>(*context_, kernel.device())),
      keys_(context_->limits().max_mr) {}

Result<std::unique_ptr<Adapter>> Adapter::open(kmd::KernelDevice& kernel) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<Adapter>> {
    auto context = umd::ProcessContext::open(kernel.kernel_node());
    if (!context) return context.error();
    std::unique_ptr<Adapter> adapter(new Adapter(kernel, context.take(), std::make_unique<Worker>(kernel.device())));
    const auto channel = adapter->context_->call(calls::CreateChannel{});
    if (!channel) return channel.error();
    adapter->channel_ = channel->channel;
    return adapter;
  });
}

Adapter::~Adapter() = default;

void Adapter::stop() {
  stop_ = true;
  kernel_.device().wake();
}

void Adapter::run() {
  running_ = true;
  Device& device = kernel_.device();
  while (!stop_) {
    const std::uint64_t seen = device.wake_count();
    if (const unsigned taken = context_->take_events(); taken != 0) device.elapse(taken * cost::kEventNs);
    const bool connected = take_connection_events();
    const bool worked = own_worker_->run_all();
    if (connected || worked || stop_) continue;
    if (!device.wait(seen, kForever)) break;
  }
  running_ = false;
}

bool Adapter::take_connection_events() {
  if (endpoints_.empty()) return false;
  const auto read = context_->port().call(calls::ReadEvents{.channel = channel_, .most = 16});
  if (!read) return false;
  for (std::uint32_t i = 0; i < read->count; ++i) {
    const auto found = endpoints_.find(read->events[i].object);
    if (found == endpoints_.end()) continue;
    if (const auto event = context_->call(calls::TakeConnectionEvent{.endpoint = found->first}))
      found->second->on_connection_event(*event);
  }
  return read->count != 0;
}

void Adapter::subscribe(calls::Handle endpoint, EndpointUser* user) {
  if (user == nullptr) {
    endpoints_.erase(endpoint);
  } else {
    endpoints_[endpoint] = user;
  }
}

void Adapter::watch_key(std::uint32_t key, std::shared_ptr<FastKeys> keys) {
  const std::lock_guard lock(keys_lock_);
  keys_[key >> 8].swap(keys);
}

std::shared_ptr<umd::KeyWatch> Adapter::watch_of(std::uint32_t key) {
  const std::lock_guard lock(keys_lock_);
  const std::uint32_t index = key >> 8;
  if (index >= keys_.size() || keys_[index] == nullptr) return nullptr;
  return FastKeys::of_invalidation(keys_[index]);
}

void Adapter::invalidated(std::uint32_t key) {
  const std::lock_guard lock(keys_lock_);
  const std::uint32_t index = key >> 8;
  if (index < keys_.size() && keys_[index] != nullptr) keys_[index]->invalidated(key);
}

NTSTATUS Adapter::query_info(NDK_ADAPTER* adapter, NDK_ADAPTER_INFO* info, ULONG* size) {
  if (size == nullptr) return STATUS_INVALID_PARAMETER;
  const bool fits = info != nullptr && *size >= sizeof *info;
  *size = sizeof *info;
  if (!fits) return STATUS_BUFFER_TOO_SMALL;
  *info = of(adapter).info_;
  return STATUS_SUCCESS;
}

/// An endpoint of the connection manager is one side of one connection: none is shared.
NTSTATUS Adapter::create_shared_endpoint(NDK_ADAPTER*, const SOCKADDR*, ULONG, NDK_FN_CREATE_COMPLETION, PVOID,
                                         NDK_SHARED_ENDPOINT**) {
  return STATUS_NOT_SUPPORTED;
}

Result<void*> memory_of(const MDL* mdl, SIZE_T length) {
  if (mdl == nullptr || length == 0) return Error::kInvalidParameter;
  void* const first = MmGetMdlVirtualAddress(mdl);
  SIZE_T bytes = 0;
  for (; mdl != nullptr && bytes < length; mdl = mdl->Next) {
    if (MmGetMdlVirtualAddress(mdl) != static_cast<std::byte*>(first) + bytes) return Error::kInvalidParameter;
    bytes += mdl->ByteCount;
  }
  if (bytes < length) return Error::kInvalidParameter;
  return first;
}

NTSTATUS Adapter::build_lam(NDK_ADAPTER* face, MDL* mdl, SIZE_T length, NDK_FN_REQUEST_COMPLETION completion,
                            PVOID context, NDK_LOGICAL_ADDRESS_MAPPING* lam, ULONG* size, ULONG* fbo) {
  const auto memory = memory_of(mdl, length);
  if (!memory || size == nullptr || fbo == nullptr || completion == nullptr) return STATUS_INVALID_PARAMETER;
  const auto offset = reinterpret_cast<std::uintptr_t>(*memory) & (PAGE_SIZE - 1);
  const std::uint64_t pages = (offset + length + PAGE_SIZE - 1) / PAGE_SIZE;
  const std::uint64_t needed =
      offsetof(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) + pages * sizeof(NDK_LOGICAL_ADDRESS);
  if (needed > ~ULONG{0}) return STATUS_INVALID_PARAMETER;
  if (lam == nullptr || *size < needed) {
    *size = static_cast<ULONG>(needed);
    return STATUS_BUFFER_TOO_SMALL;
  }
  Adapter& adapter = of(face);
  void* const at = *memory;
  return pend(adapter, completion, context, [&adapter, at, length, lam, size, fbo, offset, needed] {
    auto mapping = adapter.logical_memory().build(at, length);
    if (!mapping) return control_status(mapping.error());
    Lam* const made = new (std::nothrow) Lam(adapter, **mapping);
    if (made == nullptr) {
      adapter.logical_memory().release(**mapping);
      return STATUS_INSUFFICIENT_RESOURCES;
    }
    adapter.hold();
    const auto addresses = LogicalMemory::pages(**mapping);
    lam->AdapterContext = made;
    lam->AdapterPageCount = static_cast<ULONG>(addresses.size());
    std::copy(addresses.begin(), addresses.end(), lam->AdapterPageArray);
    *size = static_cast<ULONG>(needed);
    *fbo = static_cast<ULONG>(offset);
    return STATUS_SUCCESS;
  });
}

VOID Adapter::release_lam(NDK_ADAPTER* adapter, NDK_LOGICAL_ADDRESS_MAPPING* lam) {
  of(adapter).worker().submit(*static_cast<Lam*>(lam->AdapterContext));
  lam->AdapterContext = nullptr;
}

}  // namespace rnic::ndk
