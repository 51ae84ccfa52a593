#include "driver/umd/send_queue.hpp"

#include <algorithm>
#include <bit>

#include "driver/fast_registration.hpp"
#include "driver/umd/post_send.hpp"

namespace rnic::umd {

unsigned SendQueue::log_stride_for(std::uint32_t segments, std::uint32_t inline_bytes, hw::QpType type) {
  const std::size_t body = std::max<std::size_t>(segments * kSegmentBytes, inline_bytes);
  std::size_t head = kHeadBytes;
  if (type == hw::QpType::kUd) head = kDatagramHeadBytes;
  if (type == hw::QpType::kRawPacket) head = kSendHeadBytes;
  const auto bytes = std::bit_ceil(head + body);
  return std::max<unsigned>(std::bit_width(bytes) - 1, hw::kMinLogSendStride);
}

SendQueue::SendQueue(ProcessContext& process, const Layout& layout)
    : process_(process),
      layout_(layout),
      mask_(static_cast<std::uint16_t>((1U << layout.log_depth) - 1)),
      slots_(std::size_t{1} << layout.log_depth) {
  watched_.reserve(layout.depth);
}

Result<void> SendQueue::post(std::span<const SendRequest> requests, std::size_t& posted) {
  const std::lock_guard lock(lock_);
  for (; posted < requests.size(); ++posted) {
    SendRequest request = requests[posted];
    request.defer = request.defer || posted + 1 != requests.size();
    if (auto done = post_locked(request); !done) return done;
  }
  return {};
}

std::uint32_t SendQueue::inline_pages() const {
  return inline_pages_in(std::min(1U << layout_.log_stride, hw::kUarWqeWindowBytes) / kLineBytes);
}

Result<void> SendQueue::post(const MemoryRequest& request) {
  if (request.pages.size() > inline_pages()) return Error::kInvalidParameter;
  const std::lock_guard lock(lock_);
  if (!has_slot()) {
    ring();
    return Error::kQueueFull;
  }
  settle_watched();
  if (request.watch) watched_.push_back({producer_, request.key, request.watch});
  std::uint8_t* const wqe = next_wqe();
  const RequestKind kind = kind_of(request.opcode);
  const std::size_t bytes = build(request, kind, wqe);
  publish(request, request.of_read ? RequestKind::kReadInvalidate : kind, {wqe, bytes});
  return {};
}

/// As the other build. One line, and what an inline page list needs.
std::size_t SendQueue::build(const MemoryRequest& request, RequestKind kind, std::uint8_t* wqe) const {
  const std::size_t pages = request.pages.size();
  const std::size_t bytes = lines_of(kFastHeadBytes + request.pages.size_bytes());
  std::memset(wqe, 0, bytes);
  hw::WqeControl control;
  control.opcode = static_cast<std::uint8_t>(request.opcode);
  control.silent = request.silent;
  control.fence = request.fence;
  control.wqe_index = producer_;
  control.qpn = layout_.qpn;
  control.inline_data = pages != 0;
  control.size = static_cast<std::uint8_t>(kind == RequestKind::kInvalidate ? 1 : 3 + (pages + 1) / 2);
  control.immediate = request.key;
  put_segment(wqe, control);
  if (kind != RequestKind::kInvalidate) {
    put_segment(wqe + kSegmentBytes, hw::WqeRange{.va = request.address, .length = request.length});
  }
  if (kind == RequestKind::kBind) {
    hw::WqeBind bind;
    bind.mr_key = request.region_key;
    bind.remote_read = request.remote_read;
    bind.remote_write = request.remote_write;
    bind.remote_atomic = request.remote_atomic;
    put_segment(wqe + 2 * kSegmentBytes, bind);
  } else if (kind == RequestKind::kFastRegister) {
    hw::WqeFastRegister fast;
    fast.page_list = request.page_list;
    fast.first_offset = request.first_offset;
    fast.page_count = static_cast<std::uint16_t>(request.page_count);
    fast.log_page = request.log_page;
    fast.local_write = request.local_write;
    fast.read_sink = request.read_sink;
    fast.remote_read = request.remote_read;
    fast.remote_write = request.remote_write;
    fast.remote_atomic = request.remote_atomic;
    put_segment(wqe + 2 * kSegmentBytes, fast);
    // Little-endian like the host.
    if (pages != 0) std::memcpy(wqe + kFastHeadBytes, request.pages.data(), request.pages.size_bytes());
  }
  return bytes;
}

void SendQueue::ring_deferred() {
  const std::lock_guard lock(lock_);
  ring();
}

void SendQueue::settle_watched() {
  auto watched = watched_.begin();
  for (; watched != watched_.end() && static_cast<std::uint16_t>(watched->index - oldest_) >= taken(); ++watched)
    watched->watch->accepted(watched->key);
  watched_.erase(watched_.begin(), watched);
}

void SendQueue::refuse_watched(std::uint16_t index) {
  const auto watched =
      std::find_if(watched_.begin(), watched_.end(), [index](const Watched& w) { return w.index == index; });
  if (watched == watched_.end()) return;
  // Requests end in their order: those before have executed.
  for (auto before = watched_.begin(); before != watched; ++before) before->watch->accepted(before->key);
  watched->watch->refused(watched->key);
  watched_.erase(watched_.begin(), watched + 1);
}

void SendQueue::settle() {
  const std::lock_guard lock(lock_);
  read_retired_record();
  settle_watched();
}

void SendQueue::reset() {
  const std::lock_guard lock(lock_);
  settle_watched();
  for (const auto& watched : watched_) watched.watch->refused(watched.key);
  watched_.clear();
  producer_ = rung_ = retired_ = oldest_ = 0;
  last_record_ = 0;
}

std::uint32_t SendQueue::outstanding() {
  const std::lock_guard lock(lock_);
  read_retired_record();
  return taken();
}

}  // namespace rnic::umd
