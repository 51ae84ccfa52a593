#pragma once

#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>

#include "driver/costs.hpp"
#include "driver/umd/queue_pair.hpp"
#include "driver/umd/send_queue.hpp"

// Posting, for who includes this to have it compiled into an API of its own: what the API always or never asks for
// costs nothing then, and the request is never in memory but in its slot.

namespace rnic::umd {

inline constexpr std::size_t kSegmentBytes = 16;
inline constexpr std::uint64_t kAtomicBytes = 8;
// What is in front of data segments or inline bytes.
inline constexpr std::size_t kSendHeadBytes = hw::WqeControl::kBytes;
inline constexpr std::size_t kHeadBytes = kSendHeadBytes + hw::WqeRemote::kBytes;
inline constexpr std::size_t kAtomicHeadBytes = kHeadBytes + hw::WqeAtomic::kBytes;
inline constexpr std::size_t kDatagramHeadBytes = kSendHeadBytes + hw::WqeAddress::kBytes;
inline constexpr std::size_t kLineBytes = 64;
// What is in front of an inline page list.
inline constexpr std::size_t kFastHeadBytes =
    hw::WqeControl::kBytes + hw::WqeRange::kBytes + hw::WqeFastRegister::kBytes;
static_assert(kFastHeadBytes <= kLineBytes);

/// Of inline data as many as it has bytes (decisions 15), and as many that are empty as others may have.
constexpr std::uint64_t most_inline_segments(std::uint32_t segments, std::uint32_t inline_bytes) {
  return std::uint64_t{segments} + inline_bytes;
}

constexpr RequestKind kind_of(hw::WqeOpcode opcode) {
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

/// InfiniBand specification 9.4, table 37; Ethernet frames are sent.
constexpr bool has_operation(hw::QpType type, hw::WqeOpcode opcode) {
  if (type == hw::QpType::kRc) return true;
  if (opcode == hw::WqeOpcode::kSend) return true;
  if (type == hw::QpType::kRawPacket) return false;
  if (opcode == hw::WqeOpcode::kSendImmediate) return true;
  return type == hw::QpType::kUc && (opcode == hw::WqeOpcode::kWrite || opcode == hw::WqeOpcode::kWriteImmediate);
}

constexpr bool is_atomic(RequestKind kind) {
  return kind == RequestKind::kCompareSwap || kind == RequestKind::kFetchAdd;
}

/// Bytes of a WQE in whole lines.
constexpr std::size_t lines_of(std::size_t used) { return (used + kLineBytes - 1) / kLineBytes * kLineBytes; }

template <typename Segment>
[[gnu::always_inline]] inline void put_segment(std::uint8_t* to, const Segment& segment) {
  segment.encode(std::span<std::uint8_t, Segment::kBytes>(to, Segment::kBytes));
}

[[gnu::always_inline]] inline Result<void> SendQueue::post(const SendRequest& request) {
  const std::lock_guard lock(lock_);
  return post_locked(request);
}

[[gnu::always_inline]] inline Result<void> SendQueue::post_locked(const SendRequest& request) {
  const RequestKind kind = kind_of(request.opcode);
  // The number of segments is validated before the list is read.
  if (request.segments.size() > layout_.max_segments && !has_few_inline(request)) [[unlikely]] {
    ring();
    return Error::kTooManySegments;
  }
  const std::uint64_t length = request.segments.bytes();
  if (const auto fits = check(request, kind, length); !fits) [[unlikely]] {
    ring();
    return fits;
  }
  std::uint8_t* const wqe = next_wqe();
  const std::size_t bytes = build(request, kind, static_cast<std::uint32_t>(length), wqe);
  publish(request, kind, {wqe, bytes});
  return {};
}

inline bool SendQueue::has_slot() {
  if (taken() >= layout_.depth) read_retired_record();
  return taken() < layout_.depth;
}

inline bool SendQueue::has_few_inline(const SendRequest& request) const {
  const std::uint64_t most = most_inline_segments(layout_.max_segments, layout_.max_inline);
  return request.inline_data && request.segments.size() <= most;
}

[[gnu::always_inline]] inline Result<void> SendQueue::check(const SendRequest& request, RequestKind kind,
                                                            std::uint64_t length) {
  if (length > (request.inline_data ? layout_.max_inline : layout_.max_message)) return Error::kMessageTooLong;
  if (is_atomic(kind) && (request.segments.size() != 1 || length != kAtomicBytes || request.inline_data)) {
    return Error::kInvalidParameter;
  }
  if (!has_operation(layout_.type, request.opcode) || (layout_.type == hw::QpType::kUd && request.address == nullptr)) {
    return Error::kInvalidParameter;
  }
  if (!has_slot()) return Error::kQueueFull;
  return {};
}

/// Builds it where the device will fetch it. Returns its bytes in whole lines, of which the rest is zero.
[[gnu::always_inline]] inline std::size_t SendQueue::build(const SendRequest& request, RequestKind kind,
                                                           std::uint32_t length, std::uint8_t* wqe) const {
  const SegmentList segments = request.segments;
  const bool datagram = layout_.type == hw::QpType::kUd;
  std::size_t head = kSendHeadBytes;
  if (datagram) [[unlikely]]
    head = kDatagramHeadBytes;
  else if (kind != RequestKind::kSend)
    head = is_atomic(kind) ? kAtomicHeadBytes : kHeadBytes;
  const std::size_t used = head + (request.inline_data ? length : segments.size() * hw::WqeData::kBytes);
  const std::size_t bytes = lines_of(used);
  std::memset(wqe + bytes - kLineBytes, 0, kLineBytes);

  hw::WqeControl control;
  control.opcode = static_cast<std::uint8_t>(request.opcode);
  control.silent = request.silent;
  control.fence = request.fence;
  control.solicited = request.solicited;
  control.inline_data = request.inline_data;
  control.ip_csum = request.ip_csum;
  control.wqe_index = producer_;
  control.qpn = layout_.qpn;
  control.size = static_cast<std::uint8_t>((used + kSegmentBytes - 1) / kSegmentBytes);
  control.immediate = request.immediate;
  control.length = length;
  put_segment(wqe, control);
  if (datagram) [[unlikely]]
    put_segment(wqe + kSendHeadBytes, request.address->segment(control.qpn, request.dest_qpn, request.qkey));
  else if (kind != RequestKind::kSend)
    put_segment(wqe + kSendHeadBytes, hw::WqeRemote{.va = request.remote_address, .rkey = request.remote_key});
  if (is_atomic(kind))
    put_segment(wqe + kHeadBytes, hw::WqeAtomic{.swap_add = request.swap_add, .compare = request.compare});

  std::uint8_t* to = wqe + head;
  if (request.inline_data) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Segment segment = segments[i];
      if (segment.length == 0) continue;
      std::memcpy(to, reinterpret_cast<const void*>(segment.address), segment.length);
      to += segment.length;
    }
  } else {
    for (std::size_t i = 0; i < segments.size(); ++i, to += hw::WqeData::kBytes) {
      const Segment segment = segments[i];
      put_segment(to, hw::WqeData{.va = segment.address, .length = segment.length, .lkey = segment.key});
    }
  }
  return bytes;
}

template <typename Request>
[[gnu::always_inline]] inline void SendQueue::publish(const Request& request, RequestKind kind,
                                                      std::span<const std::uint8_t> wqe) {
  slot(producer_) = {.id = request.id, .kind = kind, .silent = request.silent, .decoded = false};
  const bool nothing_deferred = rung_ == producer_;
  ++producer_;
  if (request.defer) return;
  if (nothing_deferred && few_outstanding() && wqe.size() <= hw::kUarWqeWindowBytes) {
    process_.push_wqe(wqe);
    rung_ = producer_;
  } else {
    ring();
  }
}

inline bool SendQueue::few_outstanding() {
  const auto few = [&] { return static_cast<std::uint16_t>(producer_ - retired_) <= kWindowOutstanding; };
  if (few()) return true;
  read_retired_record();
  return few();
}

inline void SendQueue::ring() {
  if (rung_ == producer_) return;
  dma_write_barrier();
  process_.ring(hw::uar::kSendDoorbell, hw::SendDoorbell{.qpn = layout_.qpn, .producer_index = producer_}.word());
  rung_ = producer_;
}

[[gnu::always_inline]] inline Result<void> QueuePair::post_here(const SendRequest& request) {
  process_->machine().elapse(cost::kPostSendNs);
  if (!process_->alive() || state() != State::kConnected) [[unlikely]]
    return refuse_to_post();
  const auto posted = send_->post(request);
  if (posted.ok() || posted.error() != Error::kQueueFull) [[likely]]
    return posted;
  // A copy: with its address in another's hands the request would have to be in memory always.
  return post_after_decoding(SendRequest(request));
}

}  // namespace rnic::umd
