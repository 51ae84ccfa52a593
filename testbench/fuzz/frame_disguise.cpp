#include <algorithm>

#include "testbench/fuzz/frame_fuzzer.hpp"
#include "testbench/fuzz/frame_layout.hpp"
#include "testbench/fuzz/fuzz_process.hpp"
#include "testbench/fuzz/packet_opcodes.hpp"

namespace rnic::testbench {
namespace {

using roce::Bytes;
using roce::kBthBytes;

}  // namespace

bool could_be_peer(std::span<const std::uint8_t> frame, std::span<const FuzzTarget> targets) {
  const auto layout = layout_of(frame);
  if (!layout || !icrc_right(frame, *layout)) return false;
  const auto qpn = roce::read_big(frame, layout->bth + 5, 3);
  return std::any_of(targets.begin(), targets.end(), [&](const FuzzTarget& target) {
    if (!target.victim || target.path.dest_qpn != qpn || target.path.ipv6 != layout->ipv6) return false;
    const std::size_t bytes = layout->ipv6 ? 16 : 4, at = layout->ip + (layout->ipv6 ? 8 : 12);
    return std::equal(target.path.source_ip.end() - static_cast<std::ptrdiff_t>(bytes), target.path.source_ip.end(),
                      frame.begin() + static_cast<std::ptrdiff_t>(at));
  });
}

void make_stranger(Bytes& frame) {
  const auto layout = layout_of(frame);
  if (!layout) return;
  const bool right = icrc_right(frame, *layout);
  frame[layout->ip + (layout->ipv6 ? 23 : 15)] = kStranger;
  if (right) repair_at(frame, *layout, true);
}

void make_plain(Bytes& frame) {
  const auto layout = layout_of(frame);
  if (!layout) return;
  const bool right = icrc_right(frame, *layout);
  const std::uint8_t opcode = frame[layout->bth];
  const std::size_t extended = static_cast<std::size_t>(std::max(roce::extended_bytes(opcode), 0));
  const std::size_t payload = std::min(frame.size(), layout->bth + kBthBytes + extended);
  for (std::size_t i = payload; i < frame.size(); ++i) frame[i] &= FuzzProcess::kPlainBits;
  // Behind address and key comes what a swap writes, or an add adds: sums have any bits.
  constexpr std::size_t kSwapAt = 12, kSwapBytes = 8;
  const bool adds = opcode == opcode::kFetchAdd;
  const std::size_t swap = layout->bth + kBthBytes + kSwapAt;
  if (adds || opcode == opcode::kCompareSwap) {
    for (std::size_t i = swap; i < std::min(swap + kSwapBytes, frame.size()); ++i)
      frame[i] &= adds ? 0 : FuzzProcess::kPlainBits;
  }
  if (right) repair_at(frame, *layout, true);
}

bool has_expected_psn(const FuzzFrame& frame) {
  const auto layout = layout_of(frame.bytes);
  return layout && roce::read_big(frame.bytes, layout->bth + 9, 3) == frame.target.psn;
}

Bytes rebind(Bytes frame, const FuzzTarget& seen, const FuzzTarget& now) {
  const auto layout = layout_of(frame);
  if (!layout) return frame;
  const bool right = icrc_right(frame, *layout);
  if (roce::read_big(frame, layout->bth + 5, 3) == seen.path.dest_qpn)
    put_big(frame, layout->bth + 5, now.path.dest_qpn, 3);
  put_big(frame, layout->bth + 9, (roce::read_big(frame, layout->bth + 9, 3) - seen.psn + now.psn) & 0xffffff, 3);
  const std::size_t reth = layout->bth + kBthBytes;
  if (frame.size() >= reth + 16) {
    constexpr std::uint64_t kNear = 1 << 20;
    const std::uint64_t va = roce::read_big(frame, reth, 8);
    if (va - seen.va + kNear < 2 * kNear) put_big(frame, reth, va - seen.va + now.va, 8);
    if (roce::read_big(frame, reth + 8, 4) == seen.rkey) put_big(frame, reth + 8, now.rkey, 4);
  }
  if (right) repair_at(frame, *layout, false);
  return frame;
}

}  // namespace rnic::testbench
