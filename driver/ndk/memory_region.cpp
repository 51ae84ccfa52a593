#include "driver/ndk/memory_region.hpp"

#include <arpa/inet.h>

namespace rnic::ndk {
namespace {

constexpr ULONG kKnownFlags =
    NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK;
// Either of its bits: the remote right needs the local one.
constexpr ULONG kLocalWriteBits = NDK_MR_FLAG_ALLOW_REMOTE_WRITE;
constexpr ULONG kRemoteWriteBit = NDK_MR_FLAG_ALLOW_REMOTE_WRITE & ~NDK_MR_FLAG_ALLOW_LOCAL_WRITE;
// Of one region, from the posting of one to the end of its invalidation. More than one is under way where a chain of
// requests registers and invalidates.
constexpr std::uint32_t kRegistrations = 8;

}  // namespace

const NDK_MR_DISPATCH MemoryRegion::kDispatch{.NdkCloseMr = close_object,
                                              .NdkQueryExtensionInterface = query_extension,
                                              .NdkRegisterMr = register_memory,
                                              .NdkDeregisterMr = deregister,
                                              .NdkInitializeFastRegisterMr = initialize_fast,
                                              .NdkGetRemoteTokenFromMr = remote_token,
                                              .NdkGetLocalTokenFromMr = local_token};

MemoryRegion::MemoryRegion(ProtectionDomain& pd, bool fast)
    : ObjectOf(pd.worker(), NdkObjectTypeMr, kDispatch), pd_(pd), fast_(fast), keys_(std::make_shared<FastKeys>()) {
  need(pd);
}

NTSTATUS MemoryRegion::create(NDK_PD* face, BOOLEAN fast, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                              NDK_MR**) {
  auto& pd = ProtectionDomain::of(face);
  return pend_creation(pd, completion, context, [&pd, fast](NDK_OBJECT_HEADER*& header) {
    const auto made = or_out_of_memory([&]() -> Result<void> {
      header = (new MemoryRegion(pd, fast != 0))->header();
      return {};
    });
    return made ? STATUS_SUCCESS : control_status(made.error());
  });
}

NTSTATUS MemoryRegion::register_memory(NDK_MR* face, MDL* mdl, SIZE_T length, ULONG flags,
                                       NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& region = of(face);
  const auto memory = memory_of(mdl, length);
  if (!memory || completion == nullptr || (flags & ~kKnownFlags) != 0) return STATUS_INVALID_PARAMETER;
  if (length > region.pd_.adapter().info().MaxRegistrationSize) return STATUS_INVALID_PARAMETER;
  if (region.fast_) return STATUS_INVALID_DEVICE_REQUEST;
  State empty = State::kEmpty;
  if (!region.state_.compare_exchange_strong(empty, State::kChanging)) return STATUS_INVALID_DEVICE_STATE;
  void* const at = *memory;
  const NTSTATUS status =
      pend(region, completion, context, [&region, at, length, flags] { return region.map(at, length, flags); });
  if (status != STATUS_PENDING) region.state_ = State::kEmpty;
  return status;
}

NTSTATUS MemoryRegion::map(void* memory, SIZE_T length, ULONG flags) {
  auto made = pd_.adapter().context()->create_mr({.address = memory,
                                                  .length = length,
                                                  .pd = pd_.handle(),
                                                  .local_write = (flags & kLocalWriteBits) != 0,
                                                  .read_sink = (flags & NDK_MR_FLAG_RDMA_READ_SINK) != 0,
                                                  .remote_read = (flags & NDK_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                                                  .remote_write = (flags & kRemoteWriteBit) != 0,
                                                  .window_bind = true});  // the interface knows no region without
  if (!made) {
    state_ = State::kEmpty;
    return control_status(made.error());
  }
  region_ = made.take();
  set(region_->key(), {reinterpret_cast<std::uintptr_t>(memory), length, (flags & NDK_MR_FLAG_ALLOW_LOCAL_WRITE) != 0});
  state_ = State::kRegistered;
  return STATUS_SUCCESS;
}

NTSTATUS MemoryRegion::deregister(NDK_MR* face, NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& region = of(face);
  if (completion == nullptr) return STATUS_INVALID_PARAMETER;
  if (region.fast_) return STATUS_INVALID_DEVICE_REQUEST;
  State registered = State::kRegistered;
  if (!region.state_.compare_exchange_strong(registered, State::kChanging)) return STATUS_INVALID_DEVICE_STATE;
  const NTSTATUS status = pend(region, completion, context, [&region] { return region.unmap(); });
  if (status != STATUS_PENDING) region.state_ = State::kRegistered;
  return status;
}

/// Decisions 23: a region with bound windows stays as it is.
NTSTATUS MemoryRegion::unmap() {
  if (auto gone = region_->destroy(); !gone) {
    state_ = State::kRegistered;
    return control_status(gone.error());
  }
  region_.reset();
  set(0, {});
  state_ = State::kEmpty;
  return STATUS_SUCCESS;
}

NTSTATUS MemoryRegion::initialize_fast(NDK_MR* face, ULONG pages, BOOLEAN remote_access,
                                       NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& region = of(face);
  if (completion == nullptr || pages == 0) return STATUS_INVALID_PARAMETER;
  if (!region.fast_) return STATUS_INVALID_DEVICE_REQUEST;
  if (pages > region.pd_.adapter().context()->limits().max_fast_pages) return STATUS_IMPLEMENTATION_LIMIT;
  return pend(region, completion, context,
              [&region, pages, remote_access] { return region.initialize(pages, remote_access != 0); });
}

/// Also once more: what was initialized before ends, with its registrations.
NTSTATUS MemoryRegion::initialize(std::uint32_t pages, bool remote_access) {
  const auto done = or_out_of_memory([&]() -> Result<void> {
    auto& adapter = pd_.adapter();
    auto made = adapter.kernel().create_fast_mr({.pd = pd_.number(),
                                                 .max_pages = pages,
                                                 .remote_access = remote_access,
                                                 .window_bind = true,
                                                 .registrations = kRegistrations});
    if (!made) return made.error();
    std::shared_ptr<kmd::KernelFastMr> next = made.take();
    if (fast_region_ != nullptr) {
      adapter.watch_key(key_, nullptr);
      if (auto gone = fast_region_->destroy(); !gone) {
        adapter.watch_key(key_, keys_);
        return gone;
      }
    }
    keys_->use(next);
    adapter.watch_key(next->key(), keys_);
    set(next->key(), {});
    const std::lock_guard lock(lock_);
    fast_region_.swap(next);
    return {};
  });
  return done ? STATUS_SUCCESS : control_status(done.error());
}

Result<FastRegistration> MemoryRegion::prepare(const FastRange& range, std::uint32_t inline_pages) {
  const std::lock_guard lock(lock_);
  if (fast_region_ == nullptr) return Error::kInvalidState;
  return fast_region_->prepare(range, inline_pages);
}

void MemoryRegion::posted(const FastRegistration& prepared, const FastRange& range) {
  const std::lock_guard lock(lock_);
  fast_region_->register_posted(prepared.key);
  key_ = prepared.key;
  extent_ = {range.base, range.length, range.local_write};
}

void MemoryRegion::not_posted(const FastRegistration& prepared) {
  const std::lock_guard lock(lock_);
  static_cast<void>(fast_region_->release(prepared.key).ok());
}

Result<void> MemoryRegion::check_bind(std::uint64_t address, std::uint64_t length, bool write) {
  const std::lock_guard lock(lock_);
  const std::uint64_t offset = address - extent_.address;
  // Of no length: it has a token, if it is a fast region, and nothing behind it.
  if (extent_.length == 0 || offset > extent_.length || length > extent_.length - offset)
    return Error::kAccessViolation;
  if (write && !extent_.local_write) return Error::kAccessViolation;
  return {};
}

void MemoryRegion::set(std::uint32_t key, const Extent& extent) {
  const std::lock_guard lock(lock_);
  key_ = key;
  extent_ = extent;
}

/// Decisions 25.
UINT32 MemoryRegion::remote_token(NDK_MR* mr) { return htonl(of(mr).key_); }
UINT32 MemoryRegion::local_token(NDK_MR* mr) { return of(mr).key_; }

/// Windows that are still bound to it keep what the device has, until they are not.
void MemoryRegion::end() {
  if (fast_region_ != nullptr) {
    pd_.adapter().watch_key(key_, nullptr);
    static_cast<void>(fast_region_->destroy().ok());
    keys_->use(nullptr);
  }
  if (region_ != nullptr) static_cast<void>(region_->destroy_with_ties().ok());
}

}  // namespace rnic::ndk
