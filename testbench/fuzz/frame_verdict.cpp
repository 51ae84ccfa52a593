#include "testbench/fuzz/frame_verdict.hpp"

#include <algorithm>

#include "testbench/fuzz/frame_layout.hpp"
#include "testbench/fuzz/packet_opcodes.hpp"

namespace rnic::testbench {
namespace {

using Inside = FrameVerdict::Inside;

constexpr std::uint8_t kInvalidRequest = 1 << 1, kRemoteAccess = 1 << 2, kRemoteOperation = 1 << 3;
constexpr std::uint32_t kLongest = 0x8000'0000;
constexpr std::size_t kLargestMtu = 4096;
constexpr std::uint8_t kSendLastInvalidate = 0x16, kSendOnlyInvalidate = 0x17;

/// What an opcode of RC is: Sends 0 to 5, Writes 6 to 0x0b.
struct Shape {
  bool send, write, first, last, receives;
  explicit Shape(std::uint8_t code)
      : send(code <= opcode::kSendOnlyImmediate || code == kSendLastInvalidate || code == kSendOnlyInvalidate),
        write(code >= opcode::kWriteFirst && code <= opcode::kWriteOnlyImmediate) {
    const unsigned place = send ? code : code - opcode::kWriteFirst;  // first, middle, last (two), only (two)
    first = place == 0 || place == 4 || place == 5 || code == kSendOnlyInvalidate;
    last = place >= 2;
    receives = (send && last) || code == 0x09 || code == opcode::kWriteOnlyImmediate;
  }
};

enum class Access : std::uint8_t { kYes, kNo, kOpen };

/// Whether the peer may do that to memory of `host`; open for keys of windows and fast registrations.
Access access(const FuzzProcess& host, std::uint64_t va, std::uint64_t length, std::uint32_t key, bool reads) {
  if (length == 0) return Access::kYes;  // no key is looked at (C9-88)
  const auto inside = [&](std::uint64_t first, std::uint64_t bytes) {
    return va >= first && va - first <= bytes && length <= bytes - (va - first) ? Access::kYes : Access::kNo;
  };
  if (key == host.key()) return inside(host.granted(), FuzzProcess::kGrantedBytes);
  if (key == host.shown_key()) return reads ? inside(host.shown(), FuzzProcess::kShownBytes) : Access::kNo;
  bool open = key >> 8 == host.fast_key() >> 8;
  for (std::size_t i = 0; i < host.qps(); ++i) {
    const auto& qp = host.qp(i);
    open = open || key >> 8 == qp.window1->key() >> 8 || key >> 8 == qp.window2->key() >> 8;
  }
  return open ? Access::kOpen : Access::kNo;
}

void judge_access(FrameVerdict& verdict, Access access) {
  if (access != Access::kYes) verdict.naks |= kRemoteAccess;
  if (access == Access::kNo) verdict.takes = false;
}

void refuse(FrameVerdict& verdict) {
  verdict.takes = false;
  verdict.naks |= kInvalidRequest;
}

}  // namespace

std::optional<FrameVerdict> judge_request(std::span<const std::uint8_t> frame, const FuzzTarget& target,
                                          const FuzzProcess& host) {
  const auto layout = layout_of(frame);
  if (!layout || !icrc_right(frame, *layout) || roce::read_big(frame, layout->bth + 5, 3) != target.path.dest_qpn)
    return std::nullopt;
  const std::uint8_t code = frame[layout->bth];
  if (code >= opcode::kReadResponseFirst && code <= opcode::kAtomicAcknowledge) return std::nullopt;
  FrameVerdict verdict{
      .psn = static_cast<std::uint32_t>(roce::read_big(frame, layout->bth + 9, 3)), .takes = true, .opcode = code};
  // The same packet once more, from what it says.
  const int extended = roce::extended_bytes(code);
  const std::size_t pad = frame[layout->bth + 1] >> 4 & 3, ext = layout->bth + roce::kBthBytes;
  const std::size_t end = layout->end - roce::kIcrcBytes;
  if (extended < 0 || ext + static_cast<std::size_t>(extended) + pad > end) return verdict.wild = true, verdict;
  auto fields = target.path;
  fields.opcode = code;
  fields.psn = verdict.psn;
  fields.ack_req = (frame[layout->bth + 8] & 0x80) != 0;
  fields.solicited = (frame[layout->bth + 1] & 0x80) != 0;
  const std::size_t payload = ext + static_cast<std::size_t>(extended);
  fields.ext.assign(frame.begin() + static_cast<std::ptrdiff_t>(ext),
                    frame.begin() + static_cast<std::ptrdiff_t>(payload));
  fields.payload.assign(frame.begin() + static_cast<std::ptrdiff_t>(payload),
                        frame.begin() + static_cast<std::ptrdiff_t>(end - pad));
  const auto right = roce::roce_frame(fields);
  verdict.wild = frame.size() < right.size() || !std::equal(right.begin(), right.end(), frame.begin()) ||
                 frame.size() > std::max<std::size_t>(right.size(), 60) || code > opcode::kLastRc || code == 0x15 ||
                 fields.payload.size() > kLargestMtu;  // longer than any packet (7.7.8, 9.2): it may be dropped unseen
  if (verdict.wild) return verdict;
  const std::size_t bytes = fields.payload.size();
  const auto reth = [&](std::size_t at, int count) { return roce::read_big(fields.ext, at, count); };
  if (code == opcode::kReadRequest || code == opcode::kCompareSwap || code == opcode::kFetchAdd) {
    const bool read = code == opcode::kReadRequest;
    const auto va = reth(0, 8), length = read ? reth(12, 4) : 8;
    // More of them than were agreed may be outstanding (9.4.4).
    verdict.naks |= kInvalidRequest;
    if (bytes != 0 || length > kLongest || (!read && va % 8 != 0)) refuse(verdict);
    judge_access(verdict, access(host, va, length, static_cast<std::uint32_t>(reth(8, 4)), read));
    if (read) verdict.psns = std::max(1U, static_cast<std::uint32_t>((length + target.mtu - 1) / target.mtu));
    return verdict;
  }
  const Shape shape(code);
  const auto kind = shape.send ? Inside::kSend : Inside::kWrite;
  if (!shape.first) verdict.wants = kind;
  if (!shape.last) verdict.leaves = kind;
  verdict.waits = shape.receives;
  const bool full = bytes == target.mtu, only = shape.first && shape.last;
  if (!shape.last ? !full : bytes > target.mtu || (!only && bytes == 0)) refuse(verdict);
  if (shape.send) {
    // The Receive may be too short (decisions 12), malformed or without right; an invalidation may be refused (48).
    verdict.naks |= kInvalidRequest | kRemoteOperation;
    if (code == kSendLastInvalidate || code == kSendOnlyInvalidate) verdict.naks |= kRemoteAccess;
  } else if (shape.first) {
    const auto length = reth(12, 4);
    if (length > kLongest || (only ? length != bytes : length <= target.mtu)) refuse(verdict);
    judge_access(verdict, access(host, reth(0, 8), length, static_cast<std::uint32_t>(reth(8, 4)), false));
  } else {
    verdict.naks |= kInvalidRequest;  // it may be too long or too short for what the first packet said
    // What that asked for may have been taken away meanwhile, when it is through a window.
    verdict.naks |= kRemoteAccess;
  }
  if (shape.write && shape.receives) verdict.naks |= kRemoteOperation | kInvalidRequest;
  return verdict;
}

}  // namespace rnic::testbench
