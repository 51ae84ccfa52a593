#include "driver/nd2/memory_region.hpp"

#include <arpa/inet.h>

#include "driver/nd2/status.hpp"

namespace rnic::nd2 {
namespace {

constexpr ULONG kKnownFlags = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                              ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_RDMA_READ_SINK | ND_MR_FLAG_DO_NOT_SECURE_VM;
// Either of its bits: the remote right needs the local one.
constexpr ULONG kLocalWriteBits = ND_MR_FLAG_ALLOW_REMOTE_WRITE;
constexpr ULONG kRemoteWriteBit = ND_MR_FLAG_ALLOW_REMOTE_WRITE & ~ND_MR_FLAG_ALLOW_LOCAL_WRITE;

}  // namespace

// Nothing ever stays pending: the work is done when Register and Deregister return.
HRESULT MemoryRegion::CancelOverlappedRequests() { return ND_SUCCESS; }

HRESULT MemoryRegion::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  return guarded([&] { return overlapped_result(process_->node(), overlapped, wait != FALSE); });
}

HRESULT MemoryRegion::Register(const VOID* buffer, SIZE_T length, ULONG flags, OVERLAPPED* overlapped) {
  return guarded([&] {
    if (const HRESULT status = check(buffer, length, flags); status != ND_SUCCESS) return status;
    State expected = State::kEmpty;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    if (!state_.compare_exchange_strong(expected, State::kChanging)) return ND_INVALID_DEVICE_STATE;
    OverlappedRequest request;
    {
      Change change{state_, State::kEmpty};
      if (const HRESULT status = OverlappedRequest::prepare(overlapped, file_, request); status != ND_SUCCESS)
        return status;
      if (const HRESULT status = map(buffer, length, flags); status != ND_SUCCESS) return status;
      change.after = State::kRegistered;
    }
    request.begin();
    request.complete(ND_SUCCESS);
    return ND_PENDING;
  });
}

/// Decisions 24; section 7 of the interface reference.
HRESULT MemoryRegion::check(const VOID* buffer, SIZE_T length, ULONG flags) const {
  if (length == 0) return buffer == nullptr ? ND_INVALID_PARAMETER : ND_INVALID_BUFFER_SIZE;
  if (buffer == nullptr) return ND_ACCESS_VIOLATION;
  if (length > process_->limits().max_region) return ND_INVALID_PARAMETER;
  if ((flags & ~kKnownFlags) != 0) return ND_INVALID_PARAMETER_3;
  return ND_SUCCESS;
}

HRESULT MemoryRegion::map(const VOID* buffer, SIZE_T length, ULONG flags) {
  auto region = process_->create_mr({.address = buffer,
                                     .length = length,
                                     .local_write = (flags & kLocalWriteBits) != 0,
                                     .read_sink = (flags & ND_MR_FLAG_RDMA_READ_SINK) != 0,
                                     .remote_read = (flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                                     .remote_write = (flags & kRemoteWriteBit) != 0,
                                     .window_bind = true});  // NetworkDirect knows no region without
  if (!region) return control_status(region.error());
  region_ = region.take();
  set_key(region_->key(), {.address = reinterpret_cast<std::uintptr_t>(buffer),
                           .length = length,
                           .local_write = (flags & kLocalWriteBits) != 0});
  return ND_SUCCESS;
}

void MemoryRegion::set_key(std::uint32_t key, const Extent& extent) {
  const std::lock_guard lock(extent_mutex_);
  key_ = key;
  extent_ = extent;
}

HRESULT MemoryRegion::check_bind(const VOID* buffer, SIZE_T length, bool write, std::uint32_t& key) {
  const std::lock_guard lock(extent_mutex_);
  const auto offset = reinterpret_cast<std::uintptr_t>(buffer) - extent_.address;
  if (key_ == 0 || offset > extent_.length || length > extent_.length - offset) return ND_ACCESS_VIOLATION;
  if (write && !extent_.local_write) return ND_ACCESS_VIOLATION;
  key = key_;
  return ND_SUCCESS;
}

HRESULT MemoryRegion::Deregister(OVERLAPPED* overlapped) {
  return guarded([&] {
    State expected = State::kRegistered;
    if (!state_.compare_exchange_strong(expected, State::kChanging)) return ND_INVALID_DEVICE_STATE;
    OverlappedRequest request;
    {
      Change change{state_, State::kRegistered};
      if (const HRESULT status = OverlappedRequest::prepare(overlapped, file_, request); status != ND_SUCCESS)
        return status;
      if (auto done = region_->destroy(); !done) return control_status(done.error());
      set_key(0, {});
      region_.reset();
      change.after = State::kEmpty;
    }
    request.begin();
    request.complete(ND_SUCCESS);
    return ND_PENDING;
  });
}

UINT32 MemoryRegion::GetLocalToken() { return key_.load(); }

// Decisions 25: network order, so that its bytes can be shipped as they are.
UINT32 MemoryRegion::GetRemoteToken() { return htonl(key_.load()); }

// Windows that are bound to it keep the region alive in the kernel driver until they are not.
void MemoryRegion::on_final_release() {
  set_key(0, {});
  static_cast<void>(guarded([&] {
    region_.reset();
    return ND_SUCCESS;
  }));
}

}  // namespace rnic::nd2
