#include "driver/umd/send_queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "driver/mmio.hpp"

namespace rnic::umd {
namespace {

constexpr std::size_t kSegmentBytes = 16;
constexpr std::uint64_t kAtomicBytes = 8;
constexpr std::size_t kHeadBytes = hw::WqeControl::kBytes + hw::WqeRemote::kBytes;
constexpr std::size_t kLineBytes = 64;
static_assert(hw::WqeControl::kBytes + hw::WqeRange::kBytes + hw::WqeFastRegister::kBytes <= kLineBytes);

RequestKind kind_of(hw::WqeOpcode opcode) {
  switch (opcode) {
    case hw::WqeOpcode::kSend:
    case hw::WqeOpcode::kSendImmediate:
    case hw::WqeOpcode::kSendInvalidate: return RequestKind::kSend;
    case hw::WqeOpcode::kWrite:
    case hw::WqeOpcode::kWriteImmediate: return RequestKind::kWrite;
    case hw::WqeOpcode::kRead: return RequestKind::kRead;
    case hw::WqeOpcode::kCompareSwap: return RequestKind::kCompareSwap;
    case hw::WqeOpcode::kFetchAdd: return RequestKind::kFetchAdd;
    case hw::WqeOpcode::kBindWindow1:
    case hw::WqeOpcode::kBindWindow2: return RequestKind::kBind;
    case hw::WqeOpcode::kLocalInvalidate: return RequestKind::kInvalidate;
    case hw::WqeOpcode::kFastRegister: return RequestKind::kFastRegister;
  }
  return RequestKind::kSend;
}

/// InfiniBand specification 9.4, table 37.
bool has_operation(hw::QpType type, hw::WqeOpcode opcode) {
  if (type == hw::QpType::kRc) return true;
  if (opcode == hw::WqeOpcode::kSend || opcode == hw::WqeOpcode::kSendImmediate) return true;
  return type == hw::QpType::kUc && (opcode == hw::WqeOpcode::kWrite || opcode == hw::WqeOpcode::kWriteImmediate);
}

bool is_atomic(RequestKind kind) { return kind == RequestKind::kCompareSwap || kind == RequestKind::kFetchAdd; }

}  // namespace

unsigned SendQueue::log_stride_for(std::uint32_t segments, std::uint32_t inline_bytes, hw::QpType type) {
  const std::size_t body = std::max<std::size_t>(segments * kSegmentBytes, inline_bytes);
  const std::size_t head = type == hw::QpType::kUd ? hw::WqeControl::kBytes + hw::WqeAddress::kBytes : kHeadBytes;
  const auto bytes = std::bit_ceil(head + body);
  return std::max<unsigned>(std::bit_width(bytes) - 1, hw::kMinLogSendStride);
}

SendQueue::SendQueue(ProcessContext& process, const Layout& layout)
    : process_(process),
      layout_(layout),
      mask_(static_cast<std::uint16_t>((1U << layout.log_depth) - 1)),
      slots_(std::size_t{1} << layout.log_depth) {}

Result<void> SendQueue::post(const SendRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto length = check(request);
  if (!length) {
    ring();
    return length.error();
  }
  if (!has_slot()) {
    ring();
    return Error::kQueueFull;
  }
  alignas(64) std::array<std::uint8_t, kMaxWqeBytes> wqe;
  const std::size_t bytes = build(request, *length, wqe);
  slot(producer_) = {.id = request.id, .kind = kind_of(request.opcode), .silent = request.silent, .decoded = false};
  publish(std::span(wqe).first(bytes), request.defer);
  return {};
}

Result<void> SendQueue::post(const MemoryRequest& request) {
  const std::lock_guard lock(mutex_);
  if (!has_slot()) {
    ring();
    return Error::kQueueFull;
  }
  settle_binds();
  if (request.window) binds_.push_back({producer_, request.key, request.window});
  alignas(64) std::array<std::uint8_t, kMaxWqeBytes> wqe;
  const std::size_t bytes = build(request, wqe);
  slot(producer_) = {.id = request.id, .kind = kind_of(request.opcode), .silent = request.silent, .decoded = false};
  publish(std::span(wqe).first(bytes), request.defer);
  return {};
}

bool SendQueue::has_slot() {
  if (taken() >= layout_.depth) read_retired_record();
  return taken() < layout_.depth;
}

Result<std::uint32_t> SendQueue::check(const SendRequest& request) const {
  if (!request.inline_data && request.segments.size() > layout_.max_segments) return Error::kTooManySegments;
  std::uint64_t length = 0;
  for (const auto& segment : request.segments) length += segment.length;
  if (length > (request.inline_data ? layout_.max_inline : layout_.max_message)) return Error::kMessageTooLong;
  if (is_atomic(kind_of(request.opcode)) &&
      (request.segments.size() != 1 || length != kAtomicBytes || request.inline_data)) {
    return Error::kInvalidParameter;
  }
  if (!has_operation(layout_.type, request.opcode) || (layout_.type == hw::QpType::kUd && request.address == nullptr)) {
    return Error::kInvalidParameter;
  }
  return static_cast<std::uint32_t>(length);
}

/// Returns the bytes built, padded with zeros to a multiple of 64.
std::size_t SendQueue::build(const SendRequest& request, std::uint32_t length,
                             std::span<std::uint8_t, kMaxWqeBytes> wqe) {
  std::size_t used = hw::WqeControl::kBytes;
  const RequestKind kind = kind_of(request.opcode);
  if (layout_.type == hw::QpType::kUd) {
    const auto address = request.address->segment(layout_.qpn, request.dest_qpn, request.qkey);
    address.encode(std::span<std::uint8_t, hw::WqeAddress::kBytes>(wqe.subspan(used, hw::WqeAddress::kBytes)));
    used += hw::WqeAddress::kBytes;
  } else if (kind != RequestKind::kSend) {
    const hw::WqeRemote remote{.va = request.remote_address, .rkey = request.remote_key};
    remote.encode(std::span<std::uint8_t, 16>(wqe.subspan(used, 16)));
    used += hw::WqeRemote::kBytes;
  }
  if (is_atomic(kind)) {
    const hw::WqeAtomic atomic{.swap_add = request.swap_add, .compare = request.compare};
    atomic.encode(std::span<std::uint8_t, 16>(wqe.subspan(used, 16)));
    used += hw::WqeAtomic::kBytes;
  }
  for (const auto& segment : request.segments) {
    if (!request.inline_data) {
      const hw::WqeData data{.va = segment.address, .length = segment.length, .lkey = segment.key};
      data.encode(std::span<std::uint8_t, 16>(wqe.subspan(used, 16)));
      used += hw::WqeData::kBytes;
    } else if (segment.length != 0) {
      std::memcpy(wqe.data() + used, reinterpret_cast<const void*>(segment.address), segment.length);
      used += segment.length;
    }
  }
  const std::size_t size = (used + kSegmentBytes - 1) / kSegmentBytes;
  const std::size_t padded = (used + 63) / 64 * 64;
  std::memset(wqe.data() + used, 0, padded - used);

  hw::WqeControl control;
  control.opcode = static_cast<std::uint8_t>(request.opcode);
  control.silent = request.silent;
  control.fence = request.fence;
  control.solicited = request.solicited;
  control.inline_data = request.inline_data;
  control.wqe_index = producer_;
  control.qpn = layout_.qpn;
  control.size = static_cast<std::uint8_t>(size);
  control.immediate = request.immediate;
  control.length = length;
  control.encode(std::span<std::uint8_t, 16>(wqe.first(16)));
  return padded;
}

/// Returns the bytes built: one line, padded with zeros.
std::size_t SendQueue::build(const MemoryRequest& request, std::span<std::uint8_t, kMaxWqeBytes> wqe) {
  const RequestKind kind = kind_of(request.opcode);
  const auto second = std::span<std::uint8_t, kSegmentBytes>(wqe.subspan(kSegmentBytes, kSegmentBytes));
  const auto third = std::span<std::uint8_t, kSegmentBytes>(wqe.subspan(2 * kSegmentBytes, kSegmentBytes));
  std::memset(wqe.data(), 0, kLineBytes);
  if (kind != RequestKind::kInvalidate) hw::WqeRange{.va = request.address, .length = request.length}.encode(second);
  if (kind == RequestKind::kBind) {
    hw::WqeBind bind;
    bind.mr_key = request.region_key;
    bind.remote_read = request.remote_read;
    bind.remote_write = request.remote_write;
    bind.remote_atomic = request.remote_atomic;
    bind.encode(third);
  } else if (kind == RequestKind::kFastRegister) {
    hw::WqeFastRegister fast;
    fast.page_list = request.page_list;
    fast.first_offset = request.first_offset;
    fast.page_count = static_cast<std::uint16_t>(request.page_count);
    fast.log_page = request.log_page;
    fast.local_write = request.local_write;
    fast.remote_read = request.remote_read;
    fast.remote_write = request.remote_write;
    fast.remote_atomic = request.remote_atomic;
    fast.encode(third);
  }
  hw::WqeControl control;
  control.opcode = static_cast<std::uint8_t>(request.opcode);
  control.silent = request.silent;
  control.fence = request.fence;
  control.wqe_index = producer_;
  control.qpn = layout_.qpn;
  control.size = kind == RequestKind::kInvalidate ? 1 : 3;
  control.immediate = request.key;
  control.encode(std::span<std::uint8_t, kSegmentBytes>(wqe.first(kSegmentBytes)));
  return kLineBytes;
}

void SendQueue::publish(std::span<const std::uint8_t> wqe, bool defer) {
  const std::size_t offset = static_cast<std::size_t>(producer_ & mask_) << layout_.log_stride;
  std::memcpy(layout_.ring + offset, wqe.data(), wqe.size());
  const bool nothing_deferred = rung_ == producer_;
  ++producer_;
  if (defer) return;
  if (static_cast<std::uint16_t>(producer_ - retired_) > kWindowOutstanding) read_retired_record();
  const bool few = static_cast<std::uint16_t>(producer_ - retired_) <= kWindowOutstanding;
  if (nothing_deferred && few && wqe.size() <= hw::kUarWqeWindowBytes) {
    dma_write_barrier();
    process_.push_wqe(wqe);
    rung_ = producer_;
  } else {
    ring();
  }
}

void SendQueue::ring_deferred() {
  const std::lock_guard lock(mutex_);
  ring();
}

void SendQueue::ring() {
  if (rung_ == producer_) return;
  dma_write_barrier();
  process_.ring(hw::uar::kSendDoorbell, hw::SendDoorbell{.qpn = layout_.qpn, .producer_index = producer_}.word());
  rung_ = producer_;
}

std::optional<SendQueue::Posted> SendQueue::complete(const hw::Cqe& cqe) {
  const std::lock_guard lock(mutex_);
  if (static_cast<std::uint16_t>(cqe.wqe_index - oldest_) >= taken()) return std::nullopt;
  auto& entry = slot(cqe.wqe_index);
  if (entry.decoded) return std::nullopt;
  entry.decoded = true;
  const Posted posted{entry.id, entry.kind};
  if (entry.kind == RequestKind::kBind && cqe.status != static_cast<std::uint8_t>(hw::CqeStatus::kSuccess))
    refuse_bind(cqe.wqe_index);
  read_retired_record();
  retire_to(cqe.retired_index);
  return posted;
}

void SendQueue::settle_binds() {
  const auto outstanding = std::partition(binds_.begin(), binds_.end(), [this](const Bind& bind) {
    return static_cast<std::uint16_t>(bind.index - oldest_) >= taken();
  });
  for (auto bind = binds_.begin(); bind != outstanding; ++bind) bind->window->accepted(bind->key);
  binds_.erase(binds_.begin(), outstanding);
}

void SendQueue::refuse_bind(std::uint16_t index) {
  const auto bind = std::find_if(binds_.begin(), binds_.end(), [index](const Bind& b) { return b.index == index; });
  if (bind == binds_.end()) return;
  bind->window->refused(bind->key);
  binds_.erase(bind);
}

void SendQueue::retire_to(std::uint16_t index) {
  const auto known = static_cast<std::uint16_t>(retired_ - oldest_);
  const auto offered = static_cast<std::uint16_t>(index - oldest_);
  if (offered > known && offered <= taken()) retired_ = index;
  while (oldest_ != retired_ && (slot(oldest_).silent || slot(oldest_).decoded)) ++oldest_;
}

/// The record stands still while CQEs report progress, so an old value could, 2^16 requests later, look like one that
/// is ahead. Only a value not seen before counts, and it is looked at with every CQE.
void SendQueue::read_retired_record() {
  const std::uint64_t record = load_word(layout_.retired_record);
  if (record == last_record_) return;
  last_record_ = record;
  dma_read_barrier();
  retire_to(hw::RetiredRecord::from_word(record).retired_index);
}

void SendQueue::reset() {
  const std::lock_guard lock(mutex_);
  settle_binds();
  for (const auto& bind : binds_) bind.window->refused(bind.key);
  binds_.clear();
  producer_ = rung_ = retired_ = oldest_ = 0;
  last_record_ = 0;
}

std::uint32_t SendQueue::outstanding() {
  const std::lock_guard lock(mutex_);
  read_retired_record();
  return taken();
}

}  // namespace rnic::umd
