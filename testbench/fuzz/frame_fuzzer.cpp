#include "testbench/fuzz/frame_fuzzer.hpp"

#include <algorithm>

#include "testbench/fuzz/frame_layout.hpp"
#include "testbench/fuzz/packet_opcodes.hpp"

namespace rnic::testbench {
namespace {

using namespace opcode;
using roce::Bytes;
using roce::kPsnMask;
using roce::RoceFields;

constexpr std::size_t kMostSeen = 32, kMostFrame = 9000;

}  // namespace

void FrameFuzzer::observe(std::span<const std::uint8_t> frame) {
  seen_.emplace_back(frame.begin(), frame.end());
  if (seen_.size() > kMostSeen) seen_.pop_front();
}

void FuzzTarget::take(std::uint32_t psns) {
  constexpr std::size_t kMostTaken = 64;
  taken.push_back({psn, left, is_write});
  if (taken.size() > kMostTaken) taken.erase(taken.begin());
  psn = (psn + psns) & kPsnMask;
}

void FuzzTarget::expect(std::uint32_t next, bool back) {
  const std::uint32_t ahead = (next - psn) & kPsnMask;
  if (ahead == 0 || (!back && ahead >= 0x800000)) return;
  const auto at = std::find_if(taken.begin(), taken.end(), [next](const Taken& one) { return one.psn == next; });
  left = at == taken.end() ? 0 : at->left;
  is_write = at != taken.end() && at->is_write;
  taken.erase(at, taken.end());
  psn = next;
}

std::optional<FuzzFrame> FrameFuzzer::next(std::span<FuzzTarget> targets) {
  FuzzTarget* const target = choose(targets);
  if (target == nullptr) return std::nullopt;
  ++target->frames;
  FuzzFrame made{{}, random_.chance(0.01), *target};
  made.target.taken.clear();
  if (random_.chance(0.01)) {
    made.bytes = random_bytes(1 + random_.below(random_.chance(0.1) ? kMostFrame : 300));  // no packet at all
  } else if (!seen_.empty() && random_.chance(0.08)) {
    made.bytes = seen_[random_.below(seen_.size())];
    if (random_.chance(0.9)) mutate_bytes(made.bytes);
  } else {
    build(made, *target);
  }
  if (could_be_peer(made.bytes, targets)) make_stranger(made.bytes);
  return made;
}

/// A right packet, or one with a lie. What the target should take moves its PSN on.
void FrameFuzzer::build(FuzzFrame& made, FuzzTarget& target) {
  FuzzTarget after = target;
  RoceFields fields = target.path;
  fields.psn = target.psn;
  fields.ack_req = random_.chance(0.5);
  fields.solicited = random_.chance(0.2);
  std::uint32_t psns = 0;
  if (target.group)
    datagram(fields, target);
  else if (!target.victim && random_.chance(0.08))
    response(fields, target);
  else
    psns = valid_request(fields, after);
  const auto lie = choose_lie(target.victim);
  if (lie == Lie::kHarmless) harmless_lie(fields, target);
  if (lie == Lie::kDeadly) deadly_lie(fields, target);
  for (std::uint64_t count = lie == Lie::kSeveral ? 2 + random_.below(3) : 0; count > 0; --count) {
    if (random_.chance(0.5))
      harmless_lie(fields, target);
    else
      deadly_lie(fields, target);
  }
  made.bytes = roce::roce_frame(fields);
  if (lie == Lie::kBelow) mutate_bytes(made.bytes);
  if (target.victim || psns == 0 || made.bad_fcs) return;
  made.live = lie == Lie::kNone || lie == Lie::kDeadly;
  if (lie == Lie::kNone) {
    target.take(psns);
    target.left = after.left;
    target.is_write = after.is_write;
  }
  // It may have survived; whoever looks after it finds out.
  if (lie == Lie::kDeadly) target.alive = false;
}

FrameFuzzer::Lie FrameFuzzer::choose_lie(bool victim) {
  const auto dice = random_.below(100);
  if (victim) return dice < 15 ? Lie::kNone : dice < 55 ? Lie::kSeveral : dice < 75 ? Lie::kHarmless : Lie::kBelow;
  return dice < 14   ? Lie::kHarmless
         : dice < 22 ? Lie::kBelow
         : dice < 24 ? Lie::kSeveral
         : dice < 32 ? Lie::kDeadly
                     : Lie::kNone;
}

/// Mostly those that are sacrificed, because there frames get furthest, and of these those that are alive. Null when
/// there is none.
FuzzTarget* FrameFuzzer::choose(std::span<FuzzTarget> targets) {
  const bool group = random_.chance(0.04) &&
                     std::any_of(targets.begin(), targets.end(), [](const FuzzTarget& target) { return target.group; });
  const bool victim = !group && random_.chance(0.08);
  std::size_t count = 0;
  const auto fits = [=](const FuzzTarget& target) {
    return target.group == group && target.victim == victim && (victim || target.alive);
  };
  for (const auto& target : targets) count += fits(target);
  if (count == 0) return nullptr;
  std::size_t turn = random_.below(count);
  for (auto& target : targets) {
    if (fits(target) && turn-- == 0) return &target;
  }
  return nullptr;
}

/// A packet that its target takes, if there is nothing against it that the attacker cannot know. Returns the PSNs that
/// it has.
std::uint32_t FrameFuzzer::valid_request(RoceFields& fields, FuzzTarget& target) {
  if (target.left != 0) {
    go_on(fields, target);
    return 1;
  }
  static constexpr std::array<std::uint8_t, 16> kOpcodes = {
      kWriteOnly,         kWriteOnly,          kWriteOnly,   kWriteOnly, kWriteFirst, kWriteFirst,
      kWriteFirst,        kReadRequest,        kReadRequest, kSendOnly,  kSendOnly,   kSendFirst,
      kSendOnlyImmediate, kWriteOnlyImmediate, kCompareSwap, kFetchAdd};
  fields.opcode = kOpcodes[random_.below(kOpcodes.size())];
  if (fields.opcode == kWriteFirst || fields.opcode == kSendFirst) {
    const auto message = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(target.bytes, target.mtu + 1 + random_.below(3 * target.mtu)));
    if (message > target.mtu) {
      target.is_write = fields.opcode == kWriteFirst;
      if (target.is_write)
        fields.ext = roce::reth(target.va + random_.below(target.bytes - message + 1), target.rkey, message);
      fields.payload = random_bytes(target.mtu);
      target.left = message - target.mtu;
      return 1;
    }
    fields.opcode = fields.opcode == kWriteFirst ? kWriteOnly : kSendOnly;
  }
  const bool read = fields.opcode == kReadRequest;
  const auto length = static_cast<std::uint32_t>(
      std::min<std::size_t>({random_payload(), target.bytes, read ? 4 * target.mtu : target.mtu}));
  const std::uint64_t va = target.va + random_.below(target.bytes - length + 1);
  if (read) {
    fields.ext = roce::reth(va, target.rkey, length);
    return std::max(1u, (length + target.mtu - 1) / target.mtu);
  }
  if (fields.opcode == kCompareSwap || fields.opcode == kFetchAdd) {
    const std::uint64_t first = (target.va + 7) & ~std::uint64_t{7};
    fields.ext = roce::atomic_eth(first + 8 * random_.below((target.va + target.bytes - first) / 8), target.rkey,
                                  random_.next(), random_.next());
    return 1;
  }
  if (fields.opcode == kWriteOnly || fields.opcode == kWriteOnlyImmediate)
    fields.ext = roce::reth(va, target.rkey, length);
  if (fields.opcode == kWriteOnlyImmediate || fields.opcode == kSendOnlyImmediate)
    roce::append_big(fields.ext, random_.next() & 0xffffffff, 4);
  fields.payload = random_bytes(length);
  return 1;
}

/// To all members of a group: most with their Q_Key, and short enough for what they have posted.
void FrameFuzzer::datagram(RoceFields& fields, const FuzzTarget& target) {
  fields.opcode = random_.chance(0.5) ? kDatagram : kDatagramImmediate;
  fields.psn = static_cast<std::uint32_t>(random_.next() & kPsnMask);
  roce::append_big(fields.ext, random_.chance(0.8) ? target.qkey : random_.next() & 0xffffffff, 4);
  roce::append_big(fields.ext, random_.next() & 0xffffff, 4);  // source QPN, below 8 bits that are reserved
  if (fields.opcode == kDatagramImmediate) roce::append_big(fields.ext, random_.next() & 0xffffffff, 4);
  fields.payload = random_bytes(random_payload());
}

/// The next packet of the message under way.
void FrameFuzzer::go_on(RoceFields& fields, FuzzTarget& target) {
  const bool last = target.left <= target.mtu;
  const auto length = std::min(target.left, target.mtu);
  if (target.is_write)
    fields.opcode = last ? kWriteLast : kWriteMiddle;
  else
    fields.opcode = last ? kSendLast : kSendMiddle;
  fields.payload = random_bytes(length);
  target.left -= length;
}

/// An answer to what the target has asked for, or not: near the PSNs that it has sent.
void FrameFuzzer::response(RoceFields& fields, const FuzzTarget& target) {
  static constexpr std::array<std::uint8_t, 8> kOpcodes = {
      kAcknowledge,           kAcknowledge,      kAcknowledge,      kReadResponseFirst,
      kReadResponseFirst + 1, kReadResponseLast, kReadResponseOnly, kAtomicAcknowledge};
  fields.opcode = kOpcodes[random_.below(kOpcodes.size())];
  fields.psn = random_.chance(0.7) ? (target.sent_psn + 2 - static_cast<std::uint32_t>(random_.below(6))) & kPsnMask
                                   : wrong_psn(target.sent_psn);
  const bool nak = random_.chance(0.1);
  static constexpr std::array<std::uint8_t, 5> kNaks = {0x61, 0x62, 0x63, 0x64, 0x7f},
                                               kHarmless = {0x00, 0x1f, 0x21, 0x60, 0x1f};
  const auto syndrome = random_.chance(0.05) ? static_cast<std::uint8_t>(random_.next())
                        : nak                ? kNaks[random_.below(kNaks.size())]
                                             : kHarmless[random_.below(kHarmless.size())];
  if (fields.opcode != kReadResponseFirst + 1)
    fields.ext = roce::aeth(syndrome, static_cast<std::uint32_t>(random_.next() & kPsnMask));
  if (fields.opcode == kAtomicAcknowledge)
    fields.payload = random_bytes(8);
  else if (fields.opcode != kAcknowledge)
    fields.payload = random_bytes(random_.chance(0.5) ? target.mtu : random_.below(target.mtu + 1));
}

Bytes FrameFuzzer::random_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint64_t word = random_.next();
    for (std::size_t j = i; j < std::min(count, i + 8); ++j)
      bytes[j] = static_cast<std::uint8_t>(word >> (8 * (j - i)));
  }
  return bytes;
}

/// Most are short, so that many frames fit into a second.
std::size_t FrameFuzzer::random_payload() {
  switch (random_.below(8)) {
    case 0: return 0;
    case 1: return 1 + random_.below(8);
    case 2: return 256;
    case 3: return random_.below(random_.chance(0.2) ? 4097 : 600);
    default: return random_.below(180);
  }
}

}  // namespace rnic::testbench
