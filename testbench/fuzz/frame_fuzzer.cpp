#include "testbench/fuzz/frame_fuzzer.hpp"

#include <algorithm>
#include <limits>

namespace rnic::testbench {
namespace {

using roce::Bytes;
using roce::kBthBytes;
using roce::kEthernetBytes;
using roce::kIcrcBytes;
using roce::kPsnMask;
using roce::RoceFields;

constexpr std::size_t kMostSeen = 32, kMostFrame = 9000;
constexpr std::uint8_t kStranger = 66;  ///< Last byte of an address that nobody has

// RC opcodes (InfiniBand specification 9.2.1, table 38).
constexpr std::uint8_t kSendFirst = 0x00, kSendMiddle = 0x01, kSendLast = 0x02, kSendOnly = 0x04,
                       kSendOnlyImmediate = 0x05, kWriteFirst = 0x06, kWriteMiddle = 0x07, kWriteLast = 0x08;
constexpr std::uint8_t kWriteOnly = 0x0a, kWriteOnlyImmediate = 0x0b, kReadRequest = 0x0c, kReadResponseFirst = 0x0d,
                       kReadResponseLast = 0x0f, kReadResponseOnly = 0x10;
constexpr std::uint8_t kAcknowledge = 0x11, kAtomicAcknowledge = 0x12, kCompareSwap = 0x13, kFetchAdd = 0x14,
                       kLastRc = 0x17;
constexpr std::uint8_t kDatagram = 0x64, kDatagramImmediate = 0x65;

/// Where the parts of a frame are, as its first bytes say; nothing is sure about a frame that was tampered with.
struct Layout {
  bool ipv6;
  std::size_t ip = kEthernetBytes, udp, bth, end;  ///< end: of the ICRC, as the IP header says
};

std::optional<Layout> layout_of(std::span<const std::uint8_t> frame) {
  if (frame.size() < kEthernetBytes + 1) return std::nullopt;
  const auto type = roce::read_big(frame, 12, 2);
  if (type != 0x0800 && type != 0x86DD) return std::nullopt;
  Layout layout{};
  layout.ip = kEthernetBytes;
  layout.ipv6 = type == 0x86DD;
  layout.udp = kEthernetBytes + (layout.ipv6 ? 40 : 20);
  layout.bth = layout.udp + 8;
  if (frame.size() < layout.bth + kBthBytes) return std::nullopt;
  layout.end = layout.ipv6 ? layout.udp + roce::read_big(frame, 18, 2) : kEthernetBytes + roce::read_big(frame, 16, 2);
  return layout;
}

bool icrc_right(std::span<const std::uint8_t> frame, const Layout& layout) {
  if (layout.end > frame.size() || layout.end < layout.bth + kBthBytes + kIcrcBytes) return false;
  const auto crc = roce::icrc(frame.subspan(layout.ip, layout.end - kIcrcBytes - layout.ip));
  for (std::size_t i = 0; i < kIcrcBytes; ++i) {
    if (frame[layout.end - kIcrcBytes + i] != static_cast<std::uint8_t>(crc >> (8 * i))) return false;
  }
  return true;
}

/// ICRC where the IP header says that the packet ends, and the IPv4 header checksum.
void repair_at(Bytes& frame, const Layout& layout, bool checksum) {
  if (checksum && !layout.ipv6) {
    frame[24] = frame[25] = 0;
    const auto sum = roce::ipv4_checksum(std::span(frame).subspan(kEthernetBytes));
    frame[24] = static_cast<std::uint8_t>(sum >> 8);
    frame[25] = static_cast<std::uint8_t>(sum);
  }
  if (layout.end > frame.size() || layout.end < layout.bth + kBthBytes + kIcrcBytes) return;
  const auto crc = roce::icrc(std::span(frame).subspan(layout.ip, layout.end - kIcrcBytes - layout.ip));
  for (std::size_t i = 0; i < kIcrcBytes; ++i)
    frame[layout.end - kIcrcBytes + i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

void put_big(Bytes& frame, std::size_t at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    frame[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
}

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

/// The target drops it, or treats it as a duplicate.
void FrameFuzzer::harmless_lie(RoceFields& fields, const FuzzTarget& target) {
  switch (random_.below(9)) {
    case 0: fields.opcode = static_cast<std::uint8_t>(0x20 + random_.below(0xe0)); break;
    case 1:
    case 2: fields.psn = wrong_psn(target.psn); break;
    case 3: fields.psn = (target.psn - 1 - static_cast<std::uint32_t>(random_.below(8))) & kPsnMask; break;
    case 4:
      fields.dest_qpn = random_.chance(0.5) ? fields.dest_qpn ^ 1u << random_.below(24)
                                            : static_cast<std::uint32_t>(random_.next() & 0xffffff);
      break;
    case 5: {
      static constexpr std::array<std::uint32_t, 4> kSpecial = {0, 1, 0xffffff, 0xfffffe};
      fields.dest_qpn = kSpecial[random_.below(kSpecial.size())];
      break;
    }
    case 6:
      fields.pkey =
          static_cast<std::uint16_t>(random_.chance(0.5) ? fields.pkey ^ 1u << random_.below(16) : random_.next());
      break;
    case 7:
      if (random_.chance(0.5)) {  // from somebody else
        fields.source_ip[15] = random_.chance(0.5) ? kStranger : static_cast<std::uint8_t>(random_.next());
      } else if (random_.chance(0.5)) {  // from itself, broadcast, loop-back, multicast
        fields.source_ip = fields.dest_ip;
      } else {
        for (std::size_t i = fields.ipv6 ? 0 : 12; i < 16; ++i)
          fields.source_ip[i] = random_.chance(0.5) ? 0xff : static_cast<std::uint8_t>(random_.next());
      }
      break;
    default: fields.dest_ip[12 + random_.below(4)] ^= static_cast<std::uint8_t>(1u << random_.below(8)); break;
  }
}

/// The target refuses it and fails, unless a check is missing. Lies about memory need a packet that names some: not
/// inside a message.
void FrameFuzzer::deadly_lie(RoceFields& fields, const FuzzTarget& target) {
  const auto kind = random_.below(target.left != 0 ? 5 : 16);
  if (kind >= 5) return address_lie(fields, target);
  switch (kind) {
    case 0:
    case 1: fields.opcode = static_cast<std::uint8_t>(random_.below(kLastRc + 1)); break;
    case 2: fields.payload = random_bytes(random_payload()); break;
    case 3:
      fields.payload = random_bytes(random_.chance(0.1) ? 4000 + random_.below(4900) : 256u << random_.below(4));
      break;
    default: fields.ext = random_bytes(random_.below(33)); break;
  }
}

/// A Write, Read or atomic that is right but for the memory that it names.
void FrameFuzzer::address_lie(RoceFields& fields, const FuzzTarget& target) {
  const auto dice = random_.below(10);
  const bool atomic = dice == 0, read = dice < 4 && !atomic;
  std::uint32_t length =
      atomic ? 8
             : static_cast<std::uint32_t>(random_.chance(0.7) ? 1 + random_.below(64) : 1 + random_.below(target.mtu));
  std::uint64_t va = target.va + random_.below(target.bytes - length + 1);
  std::uint32_t rkey = target.rkey;
  const std::uint64_t end = target.va + target.bytes;
  switch (random_.below(13)) {
    case 0:
    case 1: va = target.va - 1 - random_.below(std::min<std::uint64_t>(8, length)); break;  // a few bytes too early
    case 2:
    case 3: va = end + 1 + random_.below(8) - length; break;  // a few bytes too late
    case 4: va = random_.chance(0.5) ? target.va - 1 - random_.below(5000) : end + random_.below(5000); break;
    case 5: va = target.va + (std::uint64_t{1} << (12 + random_.below(50))); break;
    case 6:
      va = random_.chance(0.5)   ? std::numeric_limits<std::uint64_t>::max() - random_.below(5000)
           : random_.chance(0.5) ? 0
                                 : random_.next();
      break;
    case 7: rkey = wrong_key(rkey); break;
    case 8:
    case 9:
    case 10:
    case 11:
      if (!foreign_.empty()) {  // memory of another, with its key
        const auto& memory = foreign_[random_.below(foreign_.size())];
        rkey = memory.key;
        length = std::min(length, memory.bytes);
        va = memory.va + random_.below(memory.bytes - length + 1);
      }
      break;
    default: break;  // a lie about the length
  }
  if (atomic) {
    if (random_.chance(0.8)) va &= ~std::uint64_t{7};
    fields.opcode = random_.chance(0.5) ? kCompareSwap : kFetchAdd;
    fields.ext = roce::atomic_eth(va, rkey, random_.next(), random_.next());
    fields.payload.clear();
    return;
  }
  std::uint32_t said = length;
  if (random_.chance(0.1)) {
    const std::array<std::uint32_t, 7> kLies = {
        0, 1, target.bytes + 1, 0x7fffffff, 0x80000000, 0xffffffff, static_cast<std::uint32_t>(random_.next())};
    said = kLies[random_.below(kLies.size())];
  }
  fields.opcode = read ? kReadRequest : kWriteOnly;
  fields.ext = roce::reth(va, rkey, said);
  fields.payload = read ? Bytes{} : random_bytes(length);
}

/// Below the fields: what a builder of right packets would not produce. The ICRC is made right again more often than
/// not.
void FrameFuzzer::mutate_bytes(Bytes& frame) {
  const auto layout = layout_of(frame);
  if (!layout) return;
  const auto headers = std::min(frame.size(), layout->bth + kBthBytes + 16);
  const bool right = random_.chance(0.7);
  switch (random_.below(12)) {
    case 0: frame.resize(1 + random_.below(frame.size())); break;                 // cut anywhere
    case 1: frame.resize(std::min(frame.size(), 14 + random_.below(80))); break;  // cut in the headers
    case 2: {                                                                     // bytes behind the packet
      const auto more = random_bytes(1 + random_.below(random_.chance(0.05) ? 4000 : 100));
      frame.insert(frame.end(), more.begin(), more.end());
      break;
    }
    case 3:
      put_big(frame, layout->udp + 4, random_.chance(0.5) ? random_.below(100) : random_.next() & 0xffff, 2);
      break;                                                                            // UDP length
    case 4: put_big(frame, layout->udp + 2, random_.next() & 0xffff, 2); break;         // UDP port
    case 5: frame[layout->bth + 1] = static_cast<std::uint8_t>(random_.next()); break;  // pad count, transport version
    case 6: frame[layout->bth + 4] = static_cast<std::uint8_t>(random_.next()); break;  // reserved, FECN, BECN
    case 7: frame[layout->bth + 8] = static_cast<std::uint8_t>(random_.next()); break;  // reserved, AckReq
    case 8: frame[12 + random_.below(2)] ^= static_cast<std::uint8_t>(1u << random_.below(8)); break;  // EtherType
    case 9: frame[random_.below(headers)] ^= static_cast<std::uint8_t>(1u << random_.below(8)); break;
    case 10: frame[random_.below(frame.size())] = static_cast<std::uint8_t>(random_.next()); break;
    default: lie_in_ip(frame); break;
  }
  const auto after = layout_of(frame);
  if (right && after) repair_at(frame, *after, true);
}

void FrameFuzzer::lie_in_ip(Bytes& frame) {
  const auto layout = layout_of(frame);
  const std::size_t length_at = layout->ipv6 ? 18 : 16;
  switch (random_.below(layout->ipv6 ? 4 : 9)) {
    case 0: put_big(frame, length_at, random_.next() & 0xffff, 2); break;
    case 1: put_big(frame, length_at, roce::read_big(frame, length_at, 2) + random_.below(9) - 4, 2); break;
    case 2:
      frame[kEthernetBytes + (layout->ipv6 ? 6 : 9)] = static_cast<std::uint8_t>(random_.next());
      break;                                                                           // next header, protocol
    case 3: frame[kEthernetBytes] = static_cast<std::uint8_t>(random_.next()); break;  // version, header length
    case 4: put_big(frame, kEthernetBytes + 6, random_.next() & 0xffff, 2); break;     // fragment
    case 5: frame[kEthernetBytes + 8] = 0; break;                                      // time to live
    case 6: frame[kEthernetBytes + 10] ^= static_cast<std::uint8_t>(1 + random_.below(255)); break;  // checksum
    case 7: {                                                                                        // options
      const std::size_t words = 1 + random_.below(10);
      const auto options = random_bytes(4 * words);
      frame.insert(frame.begin() + kEthernetBytes + 20, options.begin(), options.end());
      frame[kEthernetBytes] = static_cast<std::uint8_t>(0x45 + words);
      put_big(frame, length_at, roce::read_big(frame, length_at, 2) + options.size(), 2);
      break;
    }
    default: frame[kEthernetBytes] = static_cast<std::uint8_t>(0x40 + random_.below(16)); break;  // header length alone
  }
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

std::uint32_t FrameFuzzer::wrong_psn(std::uint32_t psn) {
  switch (random_.below(5)) {
    case 0: return (psn - 1 - static_cast<std::uint32_t>(random_.below(64))) & 0xffffff;
    case 1: return (psn + 1 + static_cast<std::uint32_t>(random_.below(64))) & 0xffffff;
    case 2: return psn ^ 0x800000;
    case 3: return psn ^ 1u << random_.below(24);
    default: return static_cast<std::uint32_t>(random_.next() & 0xffffff);
  }
}

std::uint32_t FrameFuzzer::wrong_key(std::uint32_t key) {
  switch (random_.below(5)) {
    case 0: return key ^ 1u << random_.below(8);
    case 1: return key ^ 1u << (8 + random_.below(24));
    case 2: return random_.chance(0.5) ? 0 : 0xffffffff;
    case 3: return static_cast<std::uint32_t>(random_.next());
    default: return foreign_.empty() ? 0 : foreign_[random_.below(foreign_.size())].key;
  }
}

bool could_be_peer(std::span<const std::uint8_t> frame, std::span<const FuzzTarget> targets) {
  const auto layout = layout_of(frame);
  if (!layout || !icrc_right(frame, *layout)) return false;
  const auto qpn = roce::read_big(frame, layout->bth + 5, 3);
  return std::any_of(targets.begin(), targets.end(), [&](const FuzzTarget& target) {
    if (!target.victim || target.path.dest_qpn != qpn || target.path.ipv6 != layout->ipv6) return false;
    const std::size_t bytes = layout->ipv6 ? 16 : 4, at = kEthernetBytes + (layout->ipv6 ? 8 : 12);
    return std::equal(target.path.source_ip.end() - static_cast<std::ptrdiff_t>(bytes), target.path.source_ip.end(),
                      frame.begin() + static_cast<std::ptrdiff_t>(at));
  });
}

void make_stranger(Bytes& frame) {
  const auto layout = layout_of(frame);
  if (!layout) return;
  const bool right = icrc_right(frame, *layout);
  frame[kEthernetBytes + (layout->ipv6 ? 23 : 15)] = kStranger;
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
