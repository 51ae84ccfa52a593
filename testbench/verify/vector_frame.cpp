#include "testbench/verify/vector_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "testbench/roce_frame.hpp"
#include "testbench/verify/vector_packets.hpp"

namespace rnic::testbench {
namespace {

using roce::Bytes;

constexpr std::uint8_t kStranger = 66;  ///< Last byte of an address that nobody has

Bytes extended_headers(const VectorFrame& frame, const FrameTarget& target) {
  const std::uint32_t length = frame.length.value_or(frame.payload);
  Bytes ext;
  const auto append = [&ext](const Bytes& more) { ext.insert(ext.end(), more.begin(), more.end()); };
  if (is_datagram(frame.opcode)) {
    roce::append_big(ext, frame.qkey, 4);
    roce::append_big(ext, target.source_qpn, 4);
    if (frame.opcode & 1) roce::append_big(ext, frame.immediate, 4);
    return ext;
  }
  // The unreliable connection has the extended headers of the reliable one.
  switch (frame.opcode >= 0x20 && frame.opcode <= 0x2b ? frame.opcode - 0x20 : frame.opcode) {
    case 0x06:
    case 0x0a:
    case 0x0c: return roce::reth(target.va, target.rkey, length);
    case 0x0b: append(roce::reth(target.va, target.rkey, length)); break;
    case 0x0d:
    case 0x0f:
    case 0x10:
    case 0x11:
    case 0x12: return roce::aeth(frame.syndrome, frame.msn);
    case 0x13:
    case 0x14: return roce::atomic_eth(target.va, target.rkey, frame.swap_add, frame.compare);
    case 0x03:
    case 0x05:
    case 0x09:
    case 0x16:
    case 0x17: break;
    default: return ext;
  }
  roce::append_big(ext, frame.immediate, 4);
  return ext;
}

/// `byte`: with a part of the frame, and where in it.
template <typename T>
std::size_t position(const T& byte, const roce::RoceFields& fields) {
  const std::size_t extended = fields.ext.size(), ip = roce::kEthernetBytes + (fields.vlan_tci ? roce::kVlanBytes : 0),
                    udp = ip + (fields.ipv6 ? 40 : 20), bth = udp + roce::kUdpBytes, ext = bth + roce::kBthBytes;
  switch (byte.part) {
    case VectorFrame::Part::kEthernet: return byte.at;
    case VectorFrame::Part::kIp: return ip + byte.at;
    case VectorFrame::Part::kUdp: return udp + byte.at;
    case VectorFrame::Part::kBth: return bth + byte.at;
    case VectorFrame::Part::kExtended: return ext + byte.at;
    case VectorFrame::Part::kPayload: return ext + extended + byte.at;
  }
  return byte.at;
}

}  // namespace

Bytes build_frame(const VectorFrame& frame, const FrameTarget& target) {
  auto fields = target.path;
  fields.opcode = frame.opcode;
  fields.psn = (target.first_psn + frame.psn) & roce::kPsnMask;
  fields.ack_req = frame.ack_req;
  fields.solicited = frame.solicited;
  fields.pkey = frame.pkey;
  fields.vlan_tci = frame.tci;
  if (frame.group) {
    fields.dest_ip = frame.group->gid;
    fields.dest_mac = frame.group->mac;
    fields.dest_qpn = hw::kMulticastQpn;
  }
  fields.dest_qpn ^= frame.qpn_xor;
  if (frame.stranger) fields.source_ip[15] = kStranger;
  fields.ext = extended_headers(frame, target);
  for (std::uint32_t i = 0; i < frame.payload; ++i) fields.payload.push_back(pattern_byte(target.payload, i));
  Bytes bytes = roce::roce_frame(fields);
  for (const auto& byte : frame.set) {
    const auto at = position(byte, fields);
    if (at >= bytes.size())
      throw VectorError(fmt::format("\"set\": byte {} is behind the end of the frame ({} bytes)", at, bytes.size()));
    bytes[at] = byte.value;
  }
  // From behind, so that the places before stay what they were.
  auto insertions = frame.insert;
  std::stable_sort(insertions.begin(), insertions.end(),
                   [&](const auto& a, const auto& b) { return position(a, fields) > position(b, fields); });
  // The Ethernet header is not covered: what comes into it, comes when the rest is right.
  bool repaired = false;
  const auto repair = [&] {
    if (!std::exchange(repaired, true)) roce::repair(bytes);
  };
  for (const auto& more : insertions) {
    if (more.part == VectorFrame::Part::kEthernet) repair();
    const auto at = position(more, fields);
    if (at > bytes.size())
      throw VectorError(fmt::format("\"insert\": byte {} is behind the end of the frame ({} bytes)", at, bytes.size()));
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), more.bytes.begin(), more.bytes.end());
  }
  repair();
  if (frame.wrong_icrc) bytes.back() ^= 1;
  if (frame.wrong_checksum) bytes[roce::ethernet_bytes(bytes) + 11] ^= 1;
  if (frame.cut >= bytes.size())
    throw VectorError(fmt::format("\"cut\" leaves nothing of the frame ({} bytes)", bytes.size()));
  bytes.erase(bytes.end() - static_cast<std::ptrdiff_t>(frame.cut), bytes.end());
  bytes.insert(bytes.end(), frame.append, 0xa5);
  return bytes;
}

}  // namespace rnic::testbench
