// Send and receive WQEs in host memory (docs/host_interface.md, wqe_control and the segments behind it).
#include <numeric>

#include "model/reference/qp.hpp"
#include "model/reference/requester.hpp"
#include "model/reference/responder.hpp"

namespace rnic::reference {
namespace {

constexpr std::size_t kSegment = 16;

bool exists(std::uint8_t opcode, QpType type) {
  switch (opcode) {
    case wqe::Send: return true;
    case wqe::SendImmediate: return type != QpType::RawPacket;
    case wqe::Write:
    case wqe::WriteImmediate: return type == QpType::Rc || type == QpType::Uc;
    case wqe::Read:
    case wqe::CompareSwap:
    case wqe::FetchAdd:
    case wqe::SendInvalidate: return type == QpType::Rc;
    case wqe::BindWindow1:
    case wqe::BindWindow2:
    case wqe::LocalInvalidate:
    case wqe::FastRegister: return type == QpType::Rc || type == QpType::Uc;
    default: return false;
  }
}

std::vector<Segment> segments_of(const Bytes& bytes, std::size_t from, std::size_t to) {
  std::vector<Segment> segments;
  for (std::size_t at = from; at + kSegment <= to; at += kSegment)
    segments.push_back({little(bytes, at, 8), static_cast<std::uint32_t>(little(bytes, at + 8, 4)),
                        static_cast<std::uint32_t>(little(bytes, at + 12, 4))});
  return segments;
}

std::uint64_t total(const std::vector<Segment>& segments) {
  return std::accumulate(segments.begin(), segments.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Segment& segment) { return sum + segment.bytes; });
}

}  // namespace

bool SendWqe::decode(const Bytes& bytes, QpType type, std::uint16_t expected_index, std::uint32_t expected_qpn) {
  opcode = static_cast<std::uint8_t>(bytes[0]);
  silent = field(bytes, 8, 1) != 0;
  fence = field(bytes, 9, 1) != 0;
  solicited = field(bytes, 10, 1) != 0;
  inline_data = field(bytes, 11, 1) != 0;
  ip_csum = field(bytes, 12, 1) != 0;
  index = static_cast<std::uint16_t>(little(bytes, 2, 2));
  qpn = static_cast<std::uint32_t>(little(bytes, 4, 3));
  const std::size_t size = bytes[7] * kSegment;
  immediate = static_cast<std::uint32_t>(little(bytes, 8, 4));
  length = static_cast<std::uint32_t>(little(bytes, 12, 4));
  if (index != expected_index || qpn != expected_qpn || size < kSegment || size > bytes.size()) return false;
  if (!exists(opcode, type) || length > kMaxMessage || (ip_csum && type != QpType::RawPacket)) return false;
  std::size_t at = kSegment;
  if (is_memory()) {
    if (length != 0 || (inline_data && opcode != wqe::FastRegister)) return false;
    if (opcode == wqe::LocalInvalidate) return size == at;
    const std::size_t listed = inline_data && size >= 3 * kSegment ? little(bytes, 44, 2) : 0;
    if (size != (3 + (listed + 1) / 2) * kSegment) return false;
    const std::uint64_t range_va = little(bytes, 16, 8), range_length = little(bytes, 24, 8);
    if (opcode == wqe::FastRegister) {
      fast = {immediate,
              0,
              range_va,
              range_length,
              little(bytes, 32, 8),
              static_cast<std::uint32_t>(little(bytes, 40, 4)),
              static_cast<std::uint32_t>(little(bytes, 44, 2)),
              bytes[46],
              {},
              false,
              {}};
      fast.rights = {(bytes[47] & 1) != 0, (bytes[47] & 2) != 0, (bytes[47] & 4) != 0, (bytes[47] & 8) != 0, false,
                     (bytes[47] & 16) != 0};
      fast.inline_list = inline_data;
      for (std::size_t i = 0; i < listed; ++i) fast.pages.push_back(little(bytes, 48 + 8 * i, 8));
      return true;
    }
    bind = {immediate, static_cast<std::uint32_t>(little(bytes, 32, 4)),
            range_va,  range_length,
            {},        0,
            0,         opcode == wqe::BindWindow2};
    bind.rights.remote_read = (bytes[36] & 2) != 0;
    bind.rights.remote_write = (bytes[36] & 4) != 0;
    bind.rights.remote_atomic = (bytes[36] & 8) != 0;
    return true;
  }
  if (type == QpType::Ud) {
    if (size < at + 48) return false;
    path.dest = address_at(bytes, 16);
    path.dest_mac = little(bytes, 32, 6);
    path.traffic_class = bytes[38];
    path.hop_limit = bytes[39];
    dest_qpn = static_cast<std::uint32_t>(little(bytes, 40, 3));
    second_source = (bytes[43] & 1) != 0;
    qkey = static_cast<std::uint32_t>(little(bytes, 44, 4));
    path.flow_label = static_cast<std::uint32_t>(little(bytes, 48, 4) & 0xfffff);
    path.tag = requested_tag(little(bytes, 52, 2));
    if (path.vid() == kReservedVid) return false;
    at += 48;
  } else if (!is_send()) {
    if (size < at + kSegment) return false;
    va = little(bytes, at, 8);
    rkey = static_cast<std::uint32_t>(little(bytes, at + 8, 4));
    at += kSegment;
    if (is_atomic()) {
      if (size < at + kSegment || length != 8) return false;
      swap_add = little(bytes, at, 8);
      compare = little(bytes, at + 8, 8);
      at += kSegment;
    }
  }
  if (inline_data) {
    if (!(is_send() || is_write()) || length > kMaxInline || at + length > size) return false;
    data.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
    return true;
  }
  segments = segments_of(bytes, at, size);
  if (is_atomic() && segments.size() != 1) return false;
  return segments.size() <= kMaxSge && total(segments) == length;
}

std::optional<Receive> decode_receive(const Bytes& bytes, std::uint16_t index, bool shared, std::uint32_t pd) {
  const unsigned count = bytes[0];
  if (little(bytes, 2, 2) != index) return std::nullopt;
  Receive receive;
  receive.name = shared ? static_cast<std::uint16_t>(little(bytes, 4, 2)) : index;
  receive.malformed = count > kMaxSge || (count + 1) * kSegment > bytes.size();
  if (receive.malformed) return receive;
  receive.read = true;
  receive.pd = pd;
  receive.segments = segments_of(bytes, kSegment, (count + 1) * kSegment);
  return receive;
}

}  // namespace rnic::reference
