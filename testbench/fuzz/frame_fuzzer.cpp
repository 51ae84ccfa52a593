#include "testbench/fuzz/frame_fuzzer.hpp"

#include <algorithm>
#include <limits>

namespace rnic::testbench {
namespace {

using roce::Bytes;
using roce::RoceFields;

constexpr std::size_t kEthernet = 14, kIcrc = 4, kBth = 12;
constexpr std::size_t kMostSeen = 32, kMostFrame = 9000;
constexpr std::uint8_t kStranger = 66;  ///< Last byte of an address that nobody has

// RC opcodes (InfiniBand specification 9.2.1, table 38).
constexpr std::uint8_t kSendFirst = 0x00, kSendMiddle = 0x01, kSendLast = 0x02, kWriteFirst = 0x06, kWriteMiddle = 0x07, kWriteLast = 0x08, kWriteOnly = 0x0a;
constexpr std::uint8_t kReadRequest = 0x0c, kAcknowledge = 0x11, kLastRc = 0x17;

/// Where the parts of a frame are, as its first bytes say; nothing is sure about a frame that was tampered with.
struct Layout {
  bool ipv6;
  std::size_t ip = kEthernet, udp, bth, end;  ///< end: of the ICRC, as the IP header says
};

std::optional<Layout> layout_of(std::span<const std::uint8_t> frame) {
  if (frame.size() < kEthernet + 1) return std::nullopt;
  const auto type = roce::read_big(frame, 12, 2);
  if (type != 0x0800 && type != 0x86DD) return std::nullopt;
  Layout layout{};
  layout.ip = kEthernet;
  layout.ipv6 = type == 0x86DD;
  layout.udp = kEthernet + (layout.ipv6 ? 40 : 20);
  layout.bth = layout.udp + 8;
  if (frame.size() < layout.bth + kBth) return std::nullopt;
  layout.end = layout.ipv6 ? layout.udp + roce::read_big(frame, 18, 2) : kEthernet + roce::read_big(frame, 16, 2);
  return layout;
}

bool icrc_right(std::span<const std::uint8_t> frame, const Layout& layout) {
  if (layout.end > frame.size() || layout.end < layout.bth + kBth + kIcrc) return false;
  const auto crc = roce::icrc(frame.subspan(layout.ip, layout.end - kIcrc - layout.ip));
  for (std::size_t i = 0; i < kIcrc; ++i) {
    if (frame[layout.end - kIcrc + i] != static_cast<std::uint8_t>(crc >> (8 * i))) return false;
  }
  return true;
}

/// ICRC where the IP header says that the packet ends, and the IPv4 header checksum.
void repair_at(Bytes& frame, const Layout& layout, bool checksum) {
  if (checksum && !layout.ipv6) {
    frame[24] = frame[25] = 0;
    const auto sum = roce::ipv4_checksum(std::span(frame).subspan(kEthernet));
    frame[24] = static_cast<std::uint8_t>(sum >> 8);
    frame[25] = static_cast<std::uint8_t>(sum);
  }
  if (layout.end > frame.size() || layout.end < layout.bth + kBth + kIcrc) return;
  const auto crc = roce::icrc(std::span(frame).subspan(layout.ip, layout.end - kIcrc - layout.ip));
  for (std::size_t i = 0; i < kIcrc; ++i) frame[layout.end - kIcrc + i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

void put_big(Bytes& frame, std::size_t at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) frame[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
}

}  // namespace

void FrameFuzzer::observe(std::span<const std::uint8_t> frame) {
  seen_.emplace_back(frame.begin(), frame.end());
  if (seen_.size() > kMostSeen) seen_.pop_front();
}

FuzzFrame FrameFuzzer::next(std::span<FuzzTarget> targets) {
  FuzzTarget& target = choose(targets);
  FuzzFrame made{{}, random_.chance(0.01), target};
  if (random_.chance(0.01)) {
    made.bytes = random_bytes(1 + random_.below(random_.chance(0.1) ? kMostFrame : 300));  // no packet at all
  } else if (!seen_.empty() && random_.chance(0.3)) {
    made.bytes = seen_[random_.below(seen_.size())];
    if (random_.chance(0.9)) mutate_bytes(made.bytes);
  } else {
    const FuzzTarget before = target;
    auto fields = valid_fields(target);
    const bool lie = random_.chance(target.victim ? 0.85 : 0.5);
    for (std::uint64_t count = lie ? 1 + random_.below(3) : 0; count > 0; --count) mutate_fields(fields, target);
    made.bytes = roce::roce_frame(fields);
    const bool tamper = lie && random_.chance(0.3);
    if (tamper) mutate_bytes(made.bytes);
    if (lie) target = before;
    else if (!target.victim) target.psn = (target.psn + 1) & 0xffffff;
  }
  if (could_be_peer(made.bytes, targets)) make_stranger(made.bytes);
  return made;
}

/// Mostly those that are sacrificed, because there frames get furthest.
FuzzTarget& FrameFuzzer::choose(std::span<FuzzTarget> targets) {
  const bool victim = random_.chance(0.2);
  for (int tries = 0; tries < 8; ++tries) {
    auto& target = targets[random_.below(targets.size())];
    if (target.victim == victim) return target;
  }
  return targets[random_.below(targets.size())];
}

/// A packet that its target would take, if the PSN is what it expects.
RoceFields FrameFuzzer::valid_fields(FuzzTarget& target) {
  RoceFields fields = target.path;
  fields.psn = target.psn;
  fields.ack_req = random_.chance(0.5);
  fields.solicited = random_.chance(0.2);
  if (target.left != 0 && random_.chance(0.9)) {
    go_on(fields, target);
    return fields;
  }
  target.left = 0;
  fields.opcode = static_cast<std::uint8_t>(random_.below(kLastRc + 1));
  if (fields.opcode == kWriteFirst || fields.opcode == kSendFirst) {
    const auto message = static_cast<std::uint32_t>(std::min<std::uint64_t>(target.bytes, target.mtu + 1 + random_.below(3 * target.mtu)));
    target.is_write = fields.opcode == kWriteFirst;
    if (target.is_write) fields.ext = roce::reth(target.va + random_.below(target.bytes - message + 1), target.rkey, message);
    fields.payload = random_bytes(target.mtu);
    target.left = message > target.mtu ? message - target.mtu : 0;
    return fields;
  }
  const auto length = static_cast<std::uint32_t>(std::min<std::size_t>(random_payload(), target.bytes));
  const std::uint64_t va = target.va + random_.below(target.bytes - length + 1);
  const int extension = roce::extended_bytes(fields.opcode);
  if (fields.opcode == kReadRequest || fields.opcode == kWriteOnly) {
    fields.ext = roce::reth(va, target.rkey, length);
  } else if (fields.opcode == kAcknowledge) {
    static constexpr std::array<std::uint8_t, 9> kSyndromes = {0x00, 0x1f, 0x20, 0x60, 0x61, 0x62, 0x63, 0x64, 0x7f};
    const auto syndrome = random_.chance(0.8) ? kSyndromes[random_.below(kSyndromes.size())] : static_cast<std::uint8_t>(random_.next());
    fields.ext = roce::aeth(syndrome, static_cast<std::uint32_t>(random_.next()));
  } else if (extension > 0) {
    fields.ext = random_bytes(static_cast<std::size_t>(extension));
  }
  if (fields.opcode != kReadRequest && fields.opcode != kAcknowledge) fields.payload = random_bytes(length);
  return fields;
}

/// The next packet of the message under way.
void FrameFuzzer::go_on(RoceFields& fields, FuzzTarget& target) {
  const bool last = target.left <= target.mtu;
  const auto length = std::min(target.left, target.mtu);
  if (target.is_write) fields.opcode = last ? kWriteLast : kWriteMiddle;
  else fields.opcode = last ? kSendLast : kSendMiddle;
  fields.payload = random_bytes(length);
  target.left -= length;
}

void FrameFuzzer::mutate_fields(RoceFields& fields, const FuzzTarget& target) {
  const auto rewrite = [&](std::size_t at, std::uint64_t value, int bytes) {
    if (fields.ext.size() >= at + static_cast<std::size_t>(bytes)) put_big(fields.ext, at, value, bytes);
  };
  switch (random_.below(18)) {
    case 0: fields.opcode = static_cast<std::uint8_t>(random_.next()); break;
    case 1: fields.opcode = static_cast<std::uint8_t>(random_.below(kLastRc + 1)); break;
    case 2:
    case 3: fields.psn = wrong_psn(target.psn); break;
    case 4: fields.dest_qpn = random_.chance(0.5) ? fields.dest_qpn ^ 1u << random_.below(24) : static_cast<std::uint32_t>(random_.next() & 0xffffff); break;
    case 5: {
      static constexpr std::array<std::uint32_t, 4> kSpecial = {0, 1, 0xffffff, 0xfffffe};
      fields.dest_qpn = kSpecial[random_.below(kSpecial.size())];
      break;
    }
    case 6: fields.pkey = static_cast<std::uint16_t>(random_.chance(0.5) ? fields.pkey ^ 1u << random_.below(16) : random_.next()); break;
    case 7:
    case 8: rewrite(8, wrong_key(target.rkey), 4); break;
    case 9: {  // before, behind, far, wrapping, not canonical
      const std::array<std::uint64_t, 6> kWrong = {target.va - 1 - random_.below(5000), target.va + target.bytes - random_.below(16), target.va + (std::uint64_t{1} << (12 + random_.below(50))),
                                                   std::numeric_limits<std::uint64_t>::max() - random_.below(5000), 0, random_.next()};
      rewrite(0, kWrong[random_.below(kWrong.size())], 8);
      break;
    }
    case 10: {
      const std::array<std::uint64_t, 7> kLies = {0, 1, target.bytes + 1, 0x7fffffff, 0x80000000, 0xffffffff, random_.next() & 0xffffffff};
      rewrite(12, kLies[random_.below(kLies.size())], 4);
      break;
    }
    case 11: fields.payload = random_bytes(random_payload()); break;
    case 12: fields.payload = random_bytes(random_.chance(0.1) ? 4000 + random_.below(4900) : 256u << random_.below(4)); break;
    case 13: fields.ext = random_bytes(random_.below(33)); break;
    case 14: fields.source_ip[15] = random_.chance(0.5) ? kStranger : static_cast<std::uint8_t>(random_.next()); break;
    case 15: {  // to itself, broadcast, loop-back, multicast
      if (random_.chance(0.5)) fields.source_ip = fields.dest_ip;
      else for (std::size_t i = fields.ipv6 ? 0 : 12; i < 16; ++i) fields.source_ip[i] = random_.chance(0.5) ? 0xff : static_cast<std::uint8_t>(random_.next());
      break;
    }
    case 16: fields.dest_ip[12 + random_.below(4)] ^= static_cast<std::uint8_t>(1u << random_.below(8)); break;
    default: fields.psn = (target.psn + static_cast<std::uint32_t>(random_.below(4))) & 0xffffff; break;
  }
}

/// Below the fields: what a builder of right packets would not produce. The ICRC is made right again more often than not.
void FrameFuzzer::mutate_bytes(Bytes& frame) {
  const auto layout = layout_of(frame);
  if (!layout) return;
  const auto headers = std::min(frame.size(), layout->bth + kBth + 16);
  const bool right = random_.chance(0.7);
  switch (random_.below(12)) {
    case 0: frame.resize(1 + random_.below(frame.size())); break;                        // cut anywhere
    case 1: frame.resize(std::min(frame.size(), 14 + random_.below(80))); break;         // cut in the headers
    case 2: {                                                                            // bytes behind the packet
      const auto more = random_bytes(1 + random_.below(random_.chance(0.05) ? 4000 : 100));
      frame.insert(frame.end(), more.begin(), more.end());
      break;
    }
    case 3: put_big(frame, layout->udp + 4, random_.chance(0.5) ? random_.below(100) : random_.next() & 0xffff, 2); break;  // UDP length
    case 4: put_big(frame, layout->udp + 2, random_.next() & 0xffff, 2); break;                                             // UDP port
    case 5: frame[layout->bth + 1] = static_cast<std::uint8_t>(random_.next()); break;   // pad count, transport version
    case 6: frame[layout->bth + 4] = static_cast<std::uint8_t>(random_.next()); break;   // reserved, FECN, BECN
    case 7: frame[layout->bth + 8] = static_cast<std::uint8_t>(random_.next()); break;   // reserved, AckReq
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
    case 2: frame[kEthernet + (layout->ipv6 ? 6 : 9)] = static_cast<std::uint8_t>(random_.next()); break;  // next header, protocol
    case 3: frame[kEthernet] = static_cast<std::uint8_t>(random_.next()); break;                           // version, header length
    case 4: put_big(frame, kEthernet + 6, random_.next() & 0xffff, 2); break;                              // fragment
    case 5: frame[kEthernet + 8] = 0; break;                                                               // time to live
    case 6: frame[kEthernet + 10] ^= static_cast<std::uint8_t>(1 + random_.below(255)); break;             // checksum
    case 7: {                                                                                              // options
      const std::size_t words = 1 + random_.below(10);
      const auto options = random_bytes(4 * words);
      frame.insert(frame.begin() + kEthernet + 20, options.begin(), options.end());
      frame[kEthernet] = static_cast<std::uint8_t>(0x45 + words);
      put_big(frame, length_at, roce::read_big(frame, length_at, 2) + options.size(), 2);
      break;
    }
    default: frame[kEthernet] = static_cast<std::uint8_t>(0x40 + random_.below(16)); break;                // header length alone
  }
}

Bytes FrameFuzzer::random_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint64_t word = random_.next();
    for (std::size_t j = i; j < std::min(count, i + 8); ++j) bytes[j] = static_cast<std::uint8_t>(word >> (8 * (j - i)));
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
    default: return foreign_keys_.empty() ? 0 : foreign_keys_[random_.below(foreign_keys_.size())];
  }
}

bool could_be_peer(std::span<const std::uint8_t> frame, std::span<const FuzzTarget> targets) {
  const auto layout = layout_of(frame);
  if (!layout || !icrc_right(frame, *layout)) return false;
  const auto qpn = roce::read_big(frame, layout->bth + 5, 3);
  return std::any_of(targets.begin(), targets.end(), [&](const FuzzTarget& target) {
    if (!target.victim || target.path.dest_qpn != qpn || target.path.ipv6 != layout->ipv6) return false;
    const std::size_t bytes = layout->ipv6 ? 16 : 4, at = kEthernet + (layout->ipv6 ? 8 : 12);
    return std::equal(target.path.source_ip.end() - static_cast<std::ptrdiff_t>(bytes), target.path.source_ip.end(), frame.begin() + static_cast<std::ptrdiff_t>(at));
  });
}

void make_stranger(Bytes& frame) {
  const auto layout = layout_of(frame);
  if (!layout) return;
  const bool right = icrc_right(frame, *layout);
  frame[kEthernet + (layout->ipv6 ? 23 : 15)] = kStranger;
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
  if (roce::read_big(frame, layout->bth + 5, 3) == seen.path.dest_qpn) put_big(frame, layout->bth + 5, now.path.dest_qpn, 3);
  put_big(frame, layout->bth + 9, (roce::read_big(frame, layout->bth + 9, 3) - seen.psn + now.psn) & 0xffffff, 3);
  const std::size_t reth = layout->bth + kBth;
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
