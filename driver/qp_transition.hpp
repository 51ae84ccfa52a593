#pragma once

#include <cstdint>

#include "driver/generated/host_interface.hpp"

namespace rnic {

/// A set of hw::QpAttr.
using QpAttributes = std::uint32_t;

constexpr QpAttributes attribute(hw::QpAttr attr) { return static_cast<QpAttributes>(attr); }
template <typename... Rest>
constexpr QpAttributes attributes(Rest... attrs) {
  return (attribute(attrs) | ... | 0U);
}

/// What a transition takes (InfiniBand specification 10.3.1, 11.2.5.2; ibv_modify_qp): without `required` it is not
/// done, `optional` may be given too, nothing else.
struct QpTransition {
  bool legal{};
  QpAttributes required{};
  QpAttributes optional{};

  [[nodiscard]] bool takes(QpAttributes given) const {
    const QpAttributes named = given & ~attribute(hw::QpAttr::kState);
    return legal && (named & required) == required && (named & ~(required | optional)) == 0;
  }
};

/// The transition of a queue pair of that transport service. Of UD, Av stands for its own addresses, and RTR takes them
/// and the MTU, which the verbs have elsewhere.
[[nodiscard]] QpTransition qp_transition(hw::QpState from, hw::QpState to, hw::QpType type = hw::QpType::kRc);

}  // namespace rnic
