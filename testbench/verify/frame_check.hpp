#pragma once

#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// Checks a frame vector on the RTL's receive front end (rx_front) and ICRC engine (icrc): the header fields that the
/// parser reports, the ICRC that the engine computes, and that no packet with a flipped bit passes (every bit of the
/// headers, one bit of every byte behind them).
VectorOutcome check_frame(const Vector& vector);

}  // namespace rnic::testbench
