#pragma once

#include <array>
#include <cstdint>

#include "driver/generated/host_interface.hpp"

namespace rnic::umd {

/// Where a queue pair sends. What belongs to the port is named by its place in the tables of the kernel driver.
struct QpPath {
  std::uint16_t sgid_index{};               ///< Own address: GID table. Its kind decides between IPv4 and IPv6, and
                                            ///< its VLAN which tag the packets have
  std::uint16_t second_sgid_index{};        ///< UD: another own address. Where it sends, each request says
  std::array<std::uint8_t, 16> dest_gid{};  ///< Network order, first byte on the wire first; IPv4-mapped for IPv4
  std::uint64_t dest_mac{};                 ///< As a number: the first byte on the wire is bits 47:40
  std::uint8_t traffic_class{};
  std::uint8_t hop_limit = 64;
  std::uint8_t sl{};                ///< Service level: the priority in a VLAN tag
  std::uint16_t udp_source_port{};  ///< 0: from the flow label, or, if that is 0 too, from both QPNs
  std::uint32_t flow_label{};
  std::uint16_t pkey_index{};  ///< P_Key table
};

/// Everything two connected queue pairs agree on, as one of them sees it; the attributes of a queue pair.
struct QpConnection {
  QpPath path{};
  std::uint32_t dest_qpn{};
  std::uint32_t qkey{};            ///< UD
  std::uint32_t send_psn{};        ///< First PSN of this side
  std::uint32_t receive_psn{};     ///< First PSN of the peer
  std::uint8_t path_mtu = 5;       ///< ibv_mtu
  std::uint8_t inbound_reads{};    ///< max_dest_rd_atomic
  std::uint8_t outbound_reads{};   ///< max_rd_atomic
  std::uint8_t min_rnr_timer = 4;  ///< AETH timer code: 0.04 ms (InfiniBand specification 9.7.5.2.8)
  std::uint8_t ack_timeout = 14;   ///< 4.096 us * 2^n
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 6;
  bool remote_read = true;
  bool remote_write = true;
  bool remote_atomic = true;
  bool sqd_notify{};                            ///< To SQD: event SqDrained when the send queue is drained
  hw::QpState cur_state = hw::QpState::kReset;  ///< hw::QpAttr::kCurState: the state that the queue pair must be in
};

}  // namespace rnic::umd
