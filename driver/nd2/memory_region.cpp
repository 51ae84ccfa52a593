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

/// Of the process: an answer that is late fits no other operation.
std::uint32_t next_number() {
  static std::atomic<std::uint32_t> last{};
  return ++last;
}

}  // namespace

HRESULT MemoryRegion::CancelOverlappedRequests() {
  return guarded([&] { return undo(); });
}

bool MemoryRegion::cancel(const OVERLAPPED* one) {
  {
    const std::lock_guard lock(mutex_);
    if (!operation_.asked || (one != nullptr && !operation_.request.front().is(one))) return false;
  }
  return undo() == ND_SUCCESS;
}

HRESULT MemoryRegion::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  return guarded([&] { return overlapped_result(process_->node(), overlapped, wait != FALSE); });
}

HRESULT MemoryRegion::Register(const VOID* buffer, SIZE_T length, ULONG flags, OVERLAPPED* overlapped) {
  return guarded([&] {
    if (const HRESULT status = check(buffer, length, flags); status != ND_SUCCESS) return status;
    if (!process_->usable()) return ND_DEVICE_REMOVED;
    if (const HRESULT status = begin(State::kEmpty, State::kRegistering, overlapped); status != ND_SUCCESS)
      return status;
    auto asked = ask(buffer, length, flags);
    if (!asked) {
      abandon(State::kEmpty);
      return control_status(asked.error());
    }
    std::unique_lock lock(mutex_);
    region_ = asked.take();
    operation_.extent = {.address = reinterpret_cast<std::uintptr_t>(buffer),
                         .length = length,
                         .local_write = (flags & kLocalWriteBits) != 0};
    return pend(std::move(lock));
  });
}

HRESULT MemoryRegion::Deregister(OVERLAPPED* overlapped) {
  return guarded([&] {
    if (const HRESULT status = begin(State::kRegistered, State::kDeregistering, overlapped); status != ND_SUCCESS)
      return status;
    auto asked = region_->begin_destroy(operation_.number);
    if (!asked && asked.error() == Error::kDeviceFailed) return end_without_device();
    if (!asked) {
      abandon(State::kRegistered);
      return control_status(asked.error());
    }
    return pend(std::unique_lock(mutex_));
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

/// Takes the region for an operation: until it pends, or is abandoned, this thread alone works on it.
HRESULT MemoryRegion::begin(State from, State to, OVERLAPPED* overlapped) {
  Operation operation{.number = next_number(), .asked = false, .answer = {}, .request = {}, .extent = {}};
  if (const HRESULT status = prepare_request(overlapped, file_, operation.request); status != ND_SUCCESS) return status;
  process_->events().subscribe(EventTable::Of::kRegion, operation.number, weak_from_this());
  const std::lock_guard lock(mutex_);
  if (state_ != from) {
    process_->events().unsubscribe(EventTable::Of::kRegion, operation.number);
    return ND_INVALID_DEVICE_STATE;
  }
  state_ = to;
  operation_ = std::move(operation);
  return ND_SUCCESS;
}

/// The kernel driver has refused it.
void MemoryRegion::abandon(State state) {
  const std::lock_guard lock(mutex_);
  process_->events().unsubscribe(EventTable::Of::kRegion, operation_.number);
  operation_ = {};
  state_ = state;
}

Result<std::unique_ptr<umd::KernelMr>> MemoryRegion::ask(const VOID* buffer, SIZE_T length, ULONG flags) {
  return process_->begin_mr({.address = buffer,
                             .length = length,
                             .local_write = (flags & kLocalWriteBits) != 0,
                             .read_sink = (flags & ND_MR_FLAG_RDMA_READ_SINK) != 0,
                             .remote_read = (flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                             .remote_write = (flags & kRemoteWriteBit) != 0,
                             .window_bind = true},  // NetworkDirect knows no region without
                            operation_.number);
}

/// The device has its command. Its answer may have come before anybody could say to whom.
HRESULT MemoryRegion::pend(std::unique_lock<std::mutex> lock) {
  operation_.request.front().begin();
  operation_.asked = true;
  HRESULT status = ND_PENDING;
  OverlappedRequests finished;
  if (operation_.answer) finished = finish(*operation_.answer, status);
  lock.unlock();
  for (auto& request : finished) request.complete(status);
  process_->take_events();
  return ND_PENDING;
}

/// The device is gone, and so is what it knew (decisions 58).
HRESULT MemoryRegion::end_without_device() {
  static_cast<void>(region_->destroy().ok());
  std::unique_lock lock(mutex_);
  operation_.answer = calls::Status::kSuccess;
  return pend(std::move(lock));
}

void MemoryRegion::on_event(const hw::Eqe& eqe) {
  OverlappedRequests finished;
  HRESULT status = ND_SUCCESS;
  {
    const std::lock_guard lock(mutex_);
    const bool dead = eqe.event_type == static_cast<std::uint8_t>(hw::EqeType::kDeviceFatal);
    if (!dead && eqe.number != operation_.number) return;
    const auto answer = dead ? calls::Status::kDeviceFailed : static_cast<calls::Status>(eqe.detail);
    if (operation_.asked)
      finished = finish(answer, status);
    else if (operation_.number != 0 && !operation_.answer)
      operation_.answer = answer;
  }
  for (auto& request : finished) request.complete(status);
}

/// With the lock held: what the answer makes of the region, and the requests that it finishes with `status`.
OverlappedRequests MemoryRegion::finish(calls::Status answer, HRESULT& status) {
  const bool done = answer == calls::Status::kSuccess;
  const bool dead = answer == calls::Status::kDeviceFailed;
  status = done ? ND_SUCCESS : control_status(static_cast<Error>(static_cast<int>(answer) - 1));
  if (state_ == State::kRegistering) {
    state_ = done ? State::kRegistered : State::kEmpty;
    if (done) set_key(region_->key(), operation_.extent);
  } else {
    if (dead) status = ND_SUCCESS;
    state_ = done || dead ? State::kEmpty : State::kRegistered;
    if (done || dead) set_key(0, {});
  }
  // What a failed device leaves is destroyed with the next one, or with this object, which may let time pass.
  if (state_ == State::kEmpty && !dead) {
    region_->ended();
    region_.reset();
  }
  process_->events().unsubscribe(EventTable::Of::kRegion, operation_.number);
  OverlappedRequests finished = std::move(operation_.request);
  operation_ = {};
  return finished;
}

/// ND_UNSUCCESSFUL: a Deregister pends.
HRESULT MemoryRegion::undo() {
  // What has been answered is no longer to be cancelled.
  process_->take_events();
  OverlappedRequests cancelled;
  std::unique_ptr<umd::KernelMr> region;
  {
    const std::lock_guard lock(mutex_);
    if (!operation_.asked) return ND_SUCCESS;
    if (state_ == State::kDeregistering) return ND_UNSUCCESSFUL;
    process_->events().unsubscribe(EventTable::Of::kRegion, operation_.number);
    cancelled = std::move(operation_.request);
    operation_ = {};
    region = std::move(region_);
    state_ = State::kUndoing;
  }
  static_cast<void>(region->destroy_with_ties().ok());
  region.reset();
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kEmpty;
  }
  for (auto& request : cancelled) request.complete(ND_CANCELED);
  return ND_SUCCESS;
}

void MemoryRegion::set_key(std::uint32_t key, const Extent& extent) {
  key_ = key;
  extent_ = extent;
}

HRESULT MemoryRegion::check_bind(const VOID* buffer, SIZE_T length, bool write, std::uint32_t& key) {
  const std::lock_guard lock(mutex_);
  const auto offset = reinterpret_cast<std::uintptr_t>(buffer) - extent_.address;
  if (key_ == 0 || offset > extent_.length || length > extent_.length - offset) return ND_ACCESS_VIOLATION;
  if (write && !extent_.local_write) return ND_ACCESS_VIOLATION;
  key = key_;
  return ND_SUCCESS;
}

UINT32 MemoryRegion::GetLocalToken() { return key_.load(); }

// Decisions 25: network order, so that its bytes can be shipped as they are.
UINT32 MemoryRegion::GetRemoteToken() { return htonl(key_.load()); }

// Windows that are bound to it keep the region alive in the kernel driver until they are not. Requests that pend are
// cancelled, also those that the device then finishes all the same.
void MemoryRegion::on_final_release() {
  static_cast<void>(guarded([&] {
    OverlappedRequests cancelled;
    std::unique_ptr<umd::KernelMr> region;
    {
      const std::lock_guard lock(mutex_);
      if (operation_.asked) cancelled = std::move(operation_.request);
      process_->events().unsubscribe(EventTable::Of::kRegion, operation_.number);
      operation_ = {};
      set_key(0, {});
      region = std::move(region_);
      state_ = State::kUndoing;
    }
    region.reset();
    for (auto& request : cancelled) request.complete(ND_CANCELED);
    return ND_SUCCESS;
  }));
}

}  // namespace rnic::nd2
