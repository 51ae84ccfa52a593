#include "testbench/compare/random_frame.hpp"

#include <algorithm>
#include <span>

#include "testbench/roce_frame.hpp"

namespace rnic::testbench {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kTcp = 6, kUdp = 17;
constexpr std::size_t kHeaders = 14 + 60 + 60;
constexpr std::uint16_t kRocePort = 4791;

void put(Bytes& to, std::uint64_t value, std::size_t count) {
  for (std::size_t i = count; i-- > 0;) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

void set(Bytes& to, std::size_t at, std::uint64_t value) {
  to[at] = static_cast<std::uint8_t>(value >> 8);
  to[at + 1] = static_cast<std::uint8_t>(value);
}

class Maker {
 public:
  Maker(const RandomFrame& limits, model::Random& random) : limits_(limits), random_(random) {}

  Bytes make() {
    Bytes frame;
    put(frame, destination(), 6);
    put(frame, random_.chance(0.9) ? limits_.macs[0] : limits_.macs[random_.below(2)], 6);
    add_tags(frame);
    Bytes packet;
    const auto kind = random_.below(8);
    const std::uint16_t type = kind < 4 ? 0x0800 : kind < 6 ? 0x86dd : other_type();
    put(frame, type, 2);
    if (kind < 4) {
      packet = ipv4();
    } else if (kind < 6) {
      packet = ipv6();
    } else {
      packet = noise(draw_length());
    }
    frame.insert(frame.end(), packet.begin(), packet.end());
    if (random_.chance(0.3)) {
      const Bytes behind = noise(random_.below(40));
      frame.insert(frame.end(), behind.begin(), behind.end());
    }
    if (random_.chance(0.03)) frame.resize(14 + random_.below(std::max<std::size_t>(1, frame.size() - 14)));
    frame.resize(std::min(frame.size(), limits_.most_bytes));
    return frame;
  }

 private:
  std::uint64_t destination() {
    constexpr std::uint64_t kBroadcast = 0xffff'ffff'ffff;
    switch (random_.below(10)) {
      case 0: return kBroadcast;
      case 1: return 0x3333'0000'0000 | random_.below(256);
      case 2: return 0x0100'5e00'0000 | random_.below(256);
      case 3: return 0x0200'0000'0100 | random_.below(4);
      case 4: return limits_.macs[0];
      default: return limits_.macs[1];
    }
  }

  void add_tags(Bytes& frame) {
    if (random_.chance(0.7)) return;
    const bool other = random_.chance(0.2), two = random_.chance(0.2);
    put(frame, other ? 0x88a8 : 0x8100, 2);
    put(frame, random_.below(1 << 16), 2);
    if (!two) return;
    put(frame, 0x8100, 2);
    put(frame, random_.below(1 << 16), 2);
  }

  std::uint16_t other_type() {
    constexpr std::array<std::uint16_t, 5> kTypes = {0x0806, 0x88b5, 0x8915, 0x0100, 0x05dc};
    return kTypes[random_.below(kTypes.size())];
  }

  Bytes noise(std::size_t count) {
    Bytes bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_.below(256));
    return bytes;
  }

  std::size_t draw_length() {
    const auto kind = random_.below(10);
    const std::size_t most = kind < 7 ? 150 : kind < 9 ? 1480 : 4096;
    return random_.below(std::min(most, limits_.most_bytes - kHeaders) + 1);
  }

  /// A length that is right, mostly.
  std::uint64_t length(std::uint64_t right) {
    if (random_.chance(0.92)) return right;
    return random_.chance(0.5) ? random_.below(1 << 16) : (right + random_.below(9) - 4) & 0xffff;
  }

  std::uint8_t protocol() {
    constexpr std::array<std::uint8_t, 6> kOthers = {0, 1, 44, 47, 58, 132};
    if (random_.chance(0.15)) return kOthers[random_.below(kOthers.size())];
    return random_.chance(0.5) ? kTcp : kUdp;
  }

  std::uint16_t port() {
    const auto drawn = static_cast<std::uint16_t>(random_.below(1 << 16));
    if (limits_.roce && random_.chance(0.05)) return kRocePort;
    return drawn == kRocePort ? kRocePort + 1 : drawn;
  }

  /// What is behind the IP header. `pseudo`: the sum of the addresses, without protocol and length.
  Bytes transport(std::uint8_t protocol, std::uint64_t pseudo) {
    Bytes bytes;
    put(bytes, port(), 2);
    put(bytes, port(), 2);
    const std::size_t payload = draw_length();
    if (protocol != kTcp && protocol != kUdp) return noise(payload);
    if (protocol == kUdp) {
      put(bytes, length(8 + payload), 2);
      put(bytes, 0, 2);
    } else {
      const Bytes rest = noise(16);
      bytes.insert(bytes.end(), rest.begin(), rest.end());
      set(bytes, 16, 0);
    }
    const Bytes data = noise(payload);
    const std::size_t at = protocol == kUdp ? 6 : 16, first = bytes.size();
    bytes.insert(bytes.end(), data.begin(), data.end());
    const auto sum = [&] { return roce::internet_checksum(bytes, pseudo + protocol + bytes.size()); };
    // One that comes out as 0 (RFC 768).
    if (payload >= 2 && random_.chance(0.1)) {
      set(bytes, first, 0);
      set(bytes, first, sum());
    }
    std::uint16_t right = sum();
    if (protocol == kUdp && right == 0) right = 0xffff;
    set(bytes, at, random_.chance(0.5) ? right : random_.chance(0.3) ? 0 : random_.below(1 << 16));
    if (random_.chance(0.05)) bytes.resize(random_.below(bytes.size()));
    return bytes;
  }

  Bytes ipv4() {
    const std::size_t words = 5 + (random_.chance(0.25) ? random_.below(11) : 0);
    const std::uint8_t carries = protocol();
    Bytes header = noise(4 * words);
    header[0] = static_cast<std::uint8_t>((random_.chance(0.96) ? 4 : random_.below(16)) << 4 |
                                          (random_.chance(0.96) ? words : random_.below(16)));
    header[9] = carries;
    set(header, 6, random_.chance(0.85) ? 0x4000 : random_.chance(0.5) ? 0x2000 : random_.below(1 << 16));
    const Bytes rest =
        transport(carries, ~std::uint64_t{roce::internet_checksum(std::span(header).subspan(12, 8))} & 0xffff);
    set(header, 2, length(header.size() + rest.size()));
    set(header, 10, 0);
    if (random_.chance(0.6)) {
      set(header, 10, roce::internet_checksum(header));
    } else {
      set(header, 10, random_.below(1 << 16));
    }
    header.insert(header.end(), rest.begin(), rest.end());
    return header;
  }

  Bytes ipv6() {
    const std::uint8_t carries = protocol();
    Bytes header = noise(40);
    header[0] = static_cast<std::uint8_t>((random_.chance(0.96) ? 6 : random_.below(16)) << 4 | random_.below(16));
    header[6] = carries;
    const Bytes rest =
        transport(carries, ~std::uint64_t{roce::internet_checksum(std::span(header).subspan(8, 32))} & 0xffff);
    set(header, 4, length(rest.size()));
    header.insert(header.end(), rest.begin(), rest.end());
    return header;
  }

  const RandomFrame& limits_;
  model::Random& random_;
};

}  // namespace

std::vector<std::uint8_t> RandomFrame::draw(model::Random& random) const { return Maker(*this, random).make(); }

}  // namespace rnic::testbench
