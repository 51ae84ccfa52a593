#pragma once

#include <array>

#include "driver/generated/host_interface.hpp"
#include "testbench/timeline/nic_listener.hpp"

namespace rnic::testbench {

/// An event counter, and why it counts.
template <typename Reason>
struct Cause {
  hw::Counter counter;
  Reason reason;
};

/// What the counters of the receive side say of a packet. Of several that count one packet the first is the reason.
inline constexpr std::array kRxReasons = {
    Cause{hw::Counter::kRxNoQp, RxReason::kNoQp},
    Cause{hw::Counter::kRxBadState, RxReason::kBadState},
    Cause{hw::Counter::kRxBadPeer, RxReason::kBadPeer},
    Cause{hw::Counter::kRxBadQkey, RxReason::kBadQkey},
    Cause{hw::Counter::kRxBrokenMessages, RxReason::kBroken},
    Cause{hw::Counter::kRxHeld, RxReason::kWaits},
    Cause{hw::Counter::kRxNoRoom, RxReason::kWaits},
    Cause{hw::Counter::kRxDuplicate, RxReason::kDuplicate},
    Cause{hw::Counter::kRxPsnError, RxReason::kPsnError},
    Cause{hw::Counter::kRxForbidden, RxReason::kForbidden},
    Cause{hw::Counter::kRxInvalidRequest, RxReason::kInvalid},
    Cause{hw::Counter::kRxRnr, RxReason::kRnr},
    Cause{hw::Counter::kRxNaks, RxReason::kNak},
    Cause{hw::Counter::kRxGaps, RxReason::kGap},
    Cause{hw::Counter::kRxStrayResponses, RxReason::kStray},
    Cause{hw::Counter::kRxBadResponses, RxReason::kBadResponse},
};

}  // namespace rnic::testbench
