#include "model/reference/ethernet.hpp"

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

constexpr std::uint64_t kBroadcast = 0xffffffffffff;

bool is_group(std::uint64_t mac) { return (mac >> 40 & 1) != 0; }

/// Upper six bits of the CRC-32 of IEEE 802.3 over an address (clause 3.2.9), each byte from its low bit on.
unsigned hash(std::uint64_t mac) {
  std::uint32_t crc = 0xffffffff;
  for (int byte = 5; byte >= 0; --byte)
    for (int bit = 0; bit < 8; ++bit) {
      const bool one = (mac >> (8 * byte + bit) & 1) != 0;
      crc = crc << 1 ^ (one != (crc >> 31 != 0) ? 0x04c11db7 : 0);
    }
  return crc >> 26;
}

}  // namespace

bool Ethernet::wants(std::uint64_t dest, std::uint64_t source) const {
  const bool enabled = (control >> 24 & 1) != 0, all_groups = (control >> 25 & 1) != 0,
             promiscuous = (control >> 26 & 1) != 0;
  if (!enabled || (is_group(dest) && source == nic_.mac)) return false;
  if (dest == nic_.mac || dest == kBroadcast || promiscuous) return true;
  return is_group(dest) && (all_groups || (groups >> hash(dest) & 1) != 0);
}

void Ethernet::take(const Bytes& frame) {
  if (frame.size() < kEthernetHeader || !wants(big(frame, 0, 6), big(frame, 6, 6))) return;
  if (frame.size() > kMaxFrame) return nic_.count(Count::RxEthernetLost);
  nic_.count(Count::RxEthernet);
  Packet packet;
  packet.opcode = static_cast<std::uint8_t>(static_cast<unsigned>(QpType::RawPacket) << 5 | op::SendOnly);
  packet.dest_qpn = static_cast<std::uint32_t>(control & kMask24);
  packet.payload = frame;
  packet.checksums = look_at_checksums(frame);
  nic_.port.deliver(packet, false);
}

}  // namespace rnic::reference
