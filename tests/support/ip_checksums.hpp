#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

/// The checksums of Ethernet frames as the documents have them (docs/host_interface.md, Ethernet; RFC 1071), a byte at
/// a time, and frames that have some, right and wrong, or lie about themselves.
namespace rnic::test {

struct IpChecksums {
  using Bytes = std::vector<std::uint8_t>;

  /// Where the checksum of the IPv4 header is, and what it should be; nothing: there is none to be read.
  std::optional<std::size_t> l3_at;
  std::uint16_t l3 = 0;
  /// The same for TCP or UDP.
  std::optional<std::size_t> l4_at;
  std::uint16_t l4 = 0;
  /// What is said of the frame on receiving.
  bool l3_ok = false, l4_ok = false;

  static std::uint16_t word(const Bytes& bytes, std::size_t at) {
    return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
  }
  static void put(Bytes& bytes, std::size_t at, std::size_t value) {
    bytes[at] = static_cast<std::uint8_t>(value >> 8);
    bytes[at + 1] = static_cast<std::uint8_t>(value);
  }

  /// Reads a whole frame, as it is on the wire.
  static IpChecksums of(const Bytes& frame) {
    IpChecksums found;
    if (frame.size() < 18) return found;
    const std::size_t ip = word(frame, 12) == 0x8100 ? 18 : 14;
    const std::uint16_t type = word(frame, ip - 2);
    const std::size_t fixed = type == 0x0800 ? 20 : 40;
    if ((type != 0x0800 && type != 0x86DD) || frame.size() < ip + fixed) return found;
    std::size_t l4 = ip + 40, end = 0;
    std::uint8_t protocol = 0;
    Bytes pseudo;
    const auto take = [&pseudo, &frame](std::size_t from, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) pseudo.push_back(frame[from + i]);
    };
    bool whole = true;
    if (type == 0x0800) {
      const std::size_t header = 4u * (frame[ip] & 15u), total = word(frame, ip + 2);
      if (frame[ip] >> 4 != 4 || header < 20 || total < header || ip + total > frame.size()) return found;
      l4 = ip + header;
      end = ip + total;
      protocol = frame[ip + 9];
      whole = (word(frame, ip + 6) & 0x3FFF) == 0;
      found.l3_at = ip + 10;
      Bytes head(frame.begin() + static_cast<std::ptrdiff_t>(ip), frame.begin() + static_cast<std::ptrdiff_t>(l4));
      found.l3_ok = sum(head) == 0xFFFF;
      put(head, 10, 0);
      found.l3 = static_cast<std::uint16_t>(~sum(head));
      take(ip + 12, 8);
    } else {
      end = l4 + word(frame, ip + 4);
      if (frame[ip] >> 4 != 6 || end > frame.size()) return found;
      protocol = frame[ip + 6];
      take(ip + 8, 32);
    }
    const std::size_t bytes = end - l4;
    const bool udp = protocol == 17;
    if (!whole || (!udp && protocol != 6) || bytes < (udp ? 8u : 20u)) return found;
    if (udp && word(frame, l4 + 4) != bytes) return found;
    for (const std::size_t byte : {bytes >> 8, bytes & 255, std::size_t{0}, std::size_t{protocol}})
      pseudo.push_back(static_cast<std::uint8_t>(byte));
    const std::size_t field = pseudo.size() + (udp ? 6 : 16);
    take(l4, bytes);
    const bool none = udp && word(pseudo, field) == 0;
    found.l4_at = l4 + (udp ? 6 : 16);
    found.l4_ok = !none && sum(pseudo) == 0xFFFF;
    put(pseudo, field, 0);
    found.l4 = static_cast<std::uint16_t>(~sum(pseudo));
    if (udp && found.l4 == 0) found.l4 = 0xFFFF;
    return found;
  }

  /// The frame as a request with ip_csum sends it.
  static Bytes inserted(Bytes frame) {
    const IpChecksums found = of(frame);
    if (found.l3_at) put(frame, *found.l3_at, found.l3);
    if (found.l4_at) put(frame, *found.l4_at, found.l4);
    return frame;
  }

  /// The sum of RFC 1071, not complemented; an odd byte at the end has a zero behind it.
  static std::uint16_t sum(const Bytes& bytes) {
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      total += i % 2 == 0 ? bytes[i] << 8 : bytes[i];
      total = (total & 0xFFFF) + (total >> 16);
    }
    return static_cast<std::uint16_t>(total);
  }

  /// A frame of at most `most` (at least 120) bytes whose headers are random: mostly TCP or UDP, and mostly sound; the
  /// first 12 bytes are the caller's. Checksums are right, wrong or 0.
  static Bytes random_frame(std::mt19937_64& rng, std::size_t most) {
    const auto below = [&rng](std::size_t n) { return static_cast<std::size_t>(rng() % n); };
    const auto one_in = [&below](std::size_t n) { return below(n) == 0; };
    const std::size_t tags = one_in(3) ? 1 + one_in(6) : 0, ip = 14 + 4 * tags;
    const bool ipv6 = one_in(2), udp = one_in(2);
    const std::size_t header = ipv6 ? 40 : one_in(2) ? 20 : 4 * (5 + below(11));
    const std::size_t least = udp ? 8 : 20, room = most - ip - header;
    std::size_t segment = one_in(4) ? least + below(4) : least + below(room - least + 1);
    if (one_in(20)) segment = below(least + 1);
    const std::size_t behind = std::min(one_in(3) ? below(70) : 0, room - segment);
    Bytes frame(ip + header + segment + behind);
    for (auto& byte : frame) byte = static_cast<std::uint8_t>(one_in(8) ? 255 : rng());
    for (std::size_t tag = 0; tag < tags; ++tag) put(frame, 12 + 4 * tag, 0x8100);
    put(frame, ip - 2, one_in(30) ? rng() : ipv6 ? 0x86DD : 0x0800);
    const auto lie = [&](std::size_t right) { return one_in(15) ? (one_in(2) ? below(80) : right + below(3)) : right; };
    const std::size_t protocol = one_in(15) ? below(256) : udp ? 17 : 6;
    if (ipv6) {
      frame[ip] = static_cast<std::uint8_t>((one_in(25) ? below(16) : 6u) << 4);
      put(frame, ip + 4, lie(segment));
      frame[ip + 6] = static_cast<std::uint8_t>(protocol);
    } else {
      const std::size_t words = one_in(15) ? below(16) : header / 4;
      frame[ip] = static_cast<std::uint8_t>((one_in(25) ? below(16) : 4u) << 4 | words);
      put(frame, ip + 2, lie(header + segment));
      put(frame, ip + 6, one_in(12) ? 1u << below(16) : one_in(2) ? 0x4000 : 0);
      frame[ip + 9] = static_cast<std::uint8_t>(protocol);
    }
    if (udp && segment >= 6) put(frame, ip + header + 4, lie(segment));
    if (one_in(25)) frame.resize(14 + below(frame.size() - 13));
    if (!one_in(4)) frame = inserted(std::move(frame));
    const IpChecksums found = of(frame);
    // Of UDP none; and what comes out as 0, of TCP too.
    if (found.l4_at && one_in(6)) {
      put(frame, *found.l4_at, 0);
      if (const std::size_t at = *found.l4_at + 2; at + 2 <= ip + header + segment) {
        put(frame, at, 0);
        put(frame, at, of(frame).l4 == 0xFFFF ? 0 : of(frame).l4);
      }
    }
    if (found.l3_at && one_in(12)) ++frame[*found.l3_at + 1];
    return frame;
  }
};

}  // namespace rnic::test
