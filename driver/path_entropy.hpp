#pragma once

#include <cstdint>

namespace rnic {

/// A flow label for the packets between two queue pairs: the same for all of them, another for most other pairs, the
/// same in both directions, never 0. Routers that spread flows over several ways then keep a connection on one.
[[nodiscard]] constexpr std::uint32_t flow_label_for(std::uint32_t qpn, std::uint32_t other_qpn) {
  std::uint64_t mixed = std::uint64_t{qpn} * other_qpn + qpn + other_qpn;
  mixed ^= mixed >> 20;
  mixed ^= mixed >> 40;
  const auto label = static_cast<std::uint32_t>(mixed) & 0xFFFFFU;
  return label != 0 ? label : 1;
}

/// UDP source port of a flow: 0xC000 to 0xFFFF, the range that the RoCEv2 annex recommends (A17.3.1.1). The device does
/// the same for datagrams.
[[nodiscard]] constexpr std::uint16_t udp_source_port_for(std::uint32_t flow_label) {
  return static_cast<std::uint16_t>(0xC000U | ((flow_label ^ flow_label >> 14) & 0x3FFFU));
}

}  // namespace rnic
