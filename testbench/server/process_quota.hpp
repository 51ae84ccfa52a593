#pragma once

#include <cstdint>
#include <optional>

#include "driver/kmd/account.hpp"
#include "driver/limits.hpp"

namespace rnic::testbench {

/// What each process on a host may have, as a machine file says it. What it does not say leaves something for others:
/// half of what a device has few of.
struct ProcessQuota {
  using Number = std::optional<std::uint64_t>;

  Number opens{};
  Number queue_pairs{}, completion_queues{}, shared_receive_queues{};
  Number memory_regions{}, memory_windows{}, protection_domains{}, channels{}, endpoints{};
  Number multicast_groups{}, group_members{};
  Number pinned_mb{}, rings_mb{};  ///< 2^20 bytes

  /// On a device that can have as much as `limits` say.
  [[nodiscard]] kmd::Quota on(const Limits& limits) const;
};

}  // namespace rnic::testbench
