#pragma once

#include <cstdint>

namespace rnic {

/// What the device can do; from QueryCapabilities and the identity block.
struct Limits {
  std::uint16_t vendor_id{};
  std::uint16_t device_id{};
  std::uint32_t max_qp{};  ///< Beside QP1
  std::uint32_t max_cq{};
  std::uint32_t max_eq{};
  std::uint32_t max_mr{};  ///< Beside that of the host's own agent
  std::uint32_t max_queue_depth{};
  std::uint32_t max_cq_depth{};
  std::uint32_t max_eq_depth{};
  std::uint32_t max_sge{};
  std::uint32_t max_inline{};
  std::uint32_t max_rd_atomic{};
  std::uint32_t max_mtu{};  ///< ibv_mtu
  std::uint32_t uar_count{};
  std::uint32_t msix_vectors{};
  std::uint32_t max_message{};
  std::uint32_t clock_mhz{};
  std::uint64_t max_region{};  ///< Bytes of one memory region
  std::uint32_t max_mw{};      ///< Memory windows; they share the keys with the regions
  bool window_type1{};
  bool window_type2{};             ///< Type 2B
  std::uint32_t max_fast_pages{};  ///< Pages of a fast-register memory region; 0: there are none
  std::uint32_t max_srq{};         ///< Shared receive queues
  std::uint32_t max_srq_depth{};
  std::uint32_t max_multicast_groups{};  ///< Each takes any number of queue pairs
  std::uint32_t list_lines{};            ///< On chip, for page lists of FastRegister requests; the kernel driver's
};

}  // namespace rnic
