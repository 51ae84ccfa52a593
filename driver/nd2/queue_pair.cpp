#include "driver/nd2/queue_pair.hpp"

#include <arpa/inet.h>

#include "driver/nd2/connector.hpp"
#include "driver/nd2/memory_region.hpp"
#include "driver/nd2/memory_window.hpp"
#include "driver/nd2/segments.hpp"
#include "driver/nd2/status.hpp"
#include "driver/umd/memory_request.hpp"
#include "driver/umd/post_send.hpp"

namespace rnic::nd2 {
namespace {

constexpr ULONG kReadFlags = ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE;
constexpr ULONG kWriteFlags = kReadFlags | ND_OP_FLAG_INLINE;
constexpr ULONG kBindFlags = kReadFlags | ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE;
constexpr ULONG kInvalidateFlags = kReadFlags;
constexpr ULONG kSendFlags = kWriteFlags | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT;

umd::MemoryOptions options_of(VOID* context, ULONG flags) {
  return {.id = reinterpret_cast<std::uintptr_t>(context),
          .silent = (flags & ND_OP_FLAG_SILENT_SUCCESS) != 0,
          .fence = (flags & ND_OP_FLAG_READ_FENCE) != 0};
}

HRESULT status_of(const Result<void>& posted) { return posted.ok() ? ND_SUCCESS : posting_status(posted.error()); }

}  // namespace

bool QueuePair::claim(const std::shared_ptr<Connector>& connector) {
  const std::lock_guard lock(mutex_);
  if (const auto known = connector_.lock(); known != nullptr && known != connector) return false;
  connector_ = connector;
  return true;
}

void QueuePair::let_go(const Connector& connector) {
  const std::lock_guard lock(mutex_);
  if (connector_.lock().get() == &connector) connector_.reset();
}

void QueuePair::break_up() {
  std::shared_ptr<Connector> connector;
  {
    const std::lock_guard lock(mutex_);
    connector = connector_.lock();
  }
  if (connector == nullptr) return;
  connector->break_up();
  core_->process()->work();
}

// The peer is told, if there is one (decisions 9).
HRESULT QueuePair::Flush() {
  return guarded([&] {
    auto flushed = core_->flush();
    break_up();
    return flushed.ok() ? ND_SUCCESS : control_status(flushed.error());
  });
}

HRESULT QueuePair::Send(VOID* context, const ND2_SGE sge[], ULONG count, ULONG flags) {
  if ((flags & ~kSendFlags) != 0) return ND_INVALID_PARAMETER_4;
  return post(hw::WqeOpcode::kSend, context, sge, count, 0, 0, flags);
}

HRESULT QueuePair::Write(VOID* context, const ND2_SGE sge[], ULONG count, UINT64 remote_address, UINT32 remote_token,
                         ULONG flags) {
  if ((flags & ~kWriteFlags) != 0) return ND_INVALID_PARAMETER_6;
  return post(hw::WqeOpcode::kWrite, context, sge, count, remote_address, remote_token, flags);
}

HRESULT QueuePair::Read(VOID* context, const ND2_SGE sge[], ULONG count, UINT64 remote_address, UINT32 remote_token,
                        ULONG flags) {
  if ((flags & ~kReadFlags) != 0) return ND_INVALID_PARAMETER_6;
  return post(hw::WqeOpcode::kRead, context, sge, count, remote_address, remote_token, flags);
}

/// Inline data may have any number of segments; only their bytes are limited (decisions 15).
[[gnu::always_inline]] inline HRESULT QueuePair::post(hw::WqeOpcode opcode, VOID* context, const ND2_SGE sge[],
                                                      ULONG count, UINT64 remote_address, UINT32 remote_token,
                                                      ULONG flags) {
  if (sge == nullptr && count != 0) return ND_INVALID_PARAMETER_2;
  return status_of(core_->post_here({.opcode = opcode,
                                     .id = reinterpret_cast<std::uintptr_t>(context),
                                     .segments = segments_of(sge, count),
                                     .remote_address = remote_address,
                                     .remote_key = ntohl(remote_token),
                                     .silent = (flags & ND_OP_FLAG_SILENT_SUCCESS) != 0,
                                     .fence = (flags & ND_OP_FLAG_READ_FENCE) != 0,
                                     .solicited = (flags & ND_OP_FLAG_SEND_AND_SOLICIT_EVENT) != 0,
                                     .inline_data = (flags & ND_OP_FLAG_INLINE) != 0}));
}

HRESULT QueuePair::Receive(VOID* context, const ND2_SGE sge[], ULONG count) {
  return guarded([&] {
    if (sge == nullptr && count != 0) return ND_INVALID_PARAMETER_2;
    return status_of(
        core_->post_receive({.id = reinterpret_cast<std::uintptr_t>(context), .segments = segments_of(sge, count)}));
  });
}

// Decisions 17 to 21 and 23; section 8 of the interface reference. No access flag at all is accepted: nothing may be
// accessed then.
HRESULT QueuePair::Bind(VOID* context, IUnknown* region, IUnknown* window, const VOID* buffer, SIZE_T length,
                        ULONG flags) {
  return guarded([&] {
    const auto from = MemoryRegion::find(region);
    if (from == nullptr || from->process() != core_->process()) return ND_INVALID_PARAMETER_2;
    const auto to = MemoryWindow::find(window);
    if (to == nullptr || to->process() != core_->process()) return ND_INVALID_PARAMETER_3;
    if ((flags & ~kBindFlags) != 0) return ND_INVALID_PARAMETER_6;
    const bool write = (flags & ND_OP_FLAG_ALLOW_WRITE) != 0;
    umd::WindowRange range;
    if (const HRESULT status = from->check_bind(buffer, length, write, range.region_key); status != ND_SUCCESS)
      return status;
    range.address = reinterpret_cast<std::uintptr_t>(buffer);
    range.length = length;
    range.remote_read = (flags & ND_OP_FLAG_ALLOW_READ) != 0;
    range.remote_write = write;
    return status_of(umd::post_bind(*core_, to->kernel_mw(), range, options_of(context, flags)));
  });
}

HRESULT QueuePair::Invalidate(VOID* context, IUnknown* window, ULONG flags) {
  return guarded([&] {
    const auto bound = MemoryWindow::find(window);
    if (bound == nullptr || bound->process() != core_->process()) return ND_INVALID_PARAMETER_2;
    if ((flags & ~kInvalidateFlags) != 0) return ND_INVALID_PARAMETER_3;
    return status_of(umd::post_invalidate(*core_, bound->kernel_mw().key(), options_of(context, flags)));
  });
}

// The last release disconnects and flushes (section 9 of the interface reference).
void QueuePair::on_final_release() {
  static_cast<void>(guarded([&] {
    break_up();
    static_cast<void>(core_->close().ok());
    return ND_SUCCESS;
  }));
}

}  // namespace rnic::nd2
