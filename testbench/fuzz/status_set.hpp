#pragma once

#include <cstdint>
#include <initializer_list>

#include "driver/generated/host_interface.hpp"

namespace rnic::testbench {

/// Statuses that a completion may have. Empty: nothing is known.
class StatusSet {
 public:
  constexpr StatusSet() = default;
  constexpr StatusSet(std::initializer_list<hw::CqeStatus> statuses) {
    for (const auto status : statuses) bits_ |= bit(status);
  }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr bool has(hw::CqeStatus status) const { return (bits_ & bit(status)) != 0; }
  friend constexpr StatusSet operator|(StatusSet a, StatusSet b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t bit(hw::CqeStatus status) {
    return std::uint64_t{1} << (static_cast<unsigned>(status) & 63);
  }
  std::uint64_t bits_ = 0;
};

/// What an attacker's request may end with beside what is its own fault: a failure in front of it.
inline constexpr StatusSet kFlushed{hw::CqeStatus::kWrFlushErr};
/// What its peer may make of it, or nobody.
inline constexpr StatusSet kNoAnswer{hw::CqeStatus::kRetryExcErr};
inline constexpr StatusSet kRefused{hw::CqeStatus::kRemInvReqErr, hw::CqeStatus::kRemAccessErr,
                                    hw::CqeStatus::kRemOpErr, hw::CqeStatus::kRnrRetryExcErr,
                                    hw::CqeStatus::kBadRespErr};

}  // namespace rnic::testbench
