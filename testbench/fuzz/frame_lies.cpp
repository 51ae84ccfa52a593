#include <algorithm>
#include <limits>

#include "testbench/fuzz/frame_fuzzer.hpp"
#include "testbench/fuzz/frame_layout.hpp"
#include "testbench/fuzz/packet_opcodes.hpp"

namespace rnic::testbench {
namespace {

using namespace opcode;
using roce::Bytes;
using roce::kBthBytes;
using roce::kPsnMask;
using roce::RoceFields;

}  // namespace

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
        if (random_.chance(0.4)) va = memory.va + memory.bytes + 1 + random_.below(4) - length;  // a few bytes too late
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
  const std::size_t ip = layout->ip, length_at = ip + (layout->ipv6 ? 4 : 2);
  switch (random_.below(layout->ipv6 ? 4 : 9)) {
    case 0: put_big(frame, length_at, random_.next() & 0xffff, 2); break;
    case 1: put_big(frame, length_at, roce::read_big(frame, length_at, 2) + random_.below(9) - 4, 2); break;
    case 2:
      frame[ip + (layout->ipv6 ? 6 : 9)] = static_cast<std::uint8_t>(random_.next());
      break;                                                                             // next header, protocol
    case 3: frame[ip] = static_cast<std::uint8_t>(random_.next()); break;                // version, header length
    case 4: put_big(frame, ip + 6, random_.next() & 0xffff, 2); break;                   // fragment
    case 5: frame[ip + 8] = 0; break;                                                    // time to live
    case 6: frame[ip + 10] ^= static_cast<std::uint8_t>(1 + random_.below(255)); break;  // checksum
    case 7: {                                                                            // options
      const std::size_t words = 1 + random_.below(10);
      const auto options = random_bytes(4 * words);
      frame.insert(frame.begin() + ip + 20, options.begin(), options.end());
      frame[ip] = static_cast<std::uint8_t>(0x45 + words);
      put_big(frame, length_at, roce::read_big(frame, length_at, 2) + options.size(), 2);
      break;
    }
    default: frame[ip] = static_cast<std::uint8_t>(0x40 + random_.below(16)); break;  // header length alone
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

}  // namespace rnic::testbench
