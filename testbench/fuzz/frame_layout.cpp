#include "testbench/fuzz/frame_layout.hpp"

namespace rnic::testbench {

std::optional<FrameLayout> layout_of(std::span<const std::uint8_t> frame) {
  if (frame.size() < roce::kEthernetBytes + 1) return std::nullopt;
  const std::size_t ip = roce::ethernet_bytes(frame);
  if (frame.size() < ip + 1) return std::nullopt;
  const auto type = roce::read_big(frame, ip - 2, 2);
  if (type != 0x0800 && type != 0x86DD) return std::nullopt;
  FrameLayout layout{};
  layout.ip = ip;
  layout.ipv6 = type == 0x86DD;
  layout.udp = ip + (layout.ipv6 ? 40 : 20);
  layout.bth = layout.udp + 8;
  if (frame.size() < layout.bth + roce::kBthBytes) return std::nullopt;
  layout.end = layout.ipv6 ? layout.udp + roce::read_big(frame, ip + 4, 2) : ip + roce::read_big(frame, ip + 2, 2);
  return layout;
}

bool icrc_right(std::span<const std::uint8_t> frame, const FrameLayout& layout) {
  if (layout.end > frame.size() || layout.end < layout.bth + roce::kBthBytes + roce::kIcrcBytes) return false;
  const auto crc = roce::icrc(frame.subspan(layout.ip, layout.end - roce::kIcrcBytes - layout.ip));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i) {
    if (frame[layout.end - roce::kIcrcBytes + i] != static_cast<std::uint8_t>(crc >> (8 * i))) return false;
  }
  return true;
}

void repair_at(roce::Bytes& frame, const FrameLayout& layout, bool checksum) {
  if (checksum && !layout.ipv6) {
    put_big(frame, layout.ip + 10, 0, 2);
    put_big(frame, layout.ip + 10, roce::ipv4_checksum(std::span(frame).subspan(layout.ip)), 2);
  }
  if (layout.end > frame.size() || layout.end < layout.bth + roce::kBthBytes + roce::kIcrcBytes) return;
  const auto crc = roce::icrc(std::span(frame).subspan(layout.ip, layout.end - roce::kIcrcBytes - layout.ip));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i)
    frame[layout.end - roce::kIcrcBytes + i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

void put_big(roce::Bytes& frame, std::size_t at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    frame[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
}

}  // namespace rnic::testbench
