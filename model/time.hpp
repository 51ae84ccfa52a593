#pragma once

#include <cstdint>
#include <systemc>

namespace rnic::model {

/// Simulated time in integer picoseconds, the resolution of the SystemC kernel (its default, 1 ps, is never changed).
using Picoseconds = std::uint64_t;

inline constexpr Picoseconds kPicosecondsPerNanosecond = 1000;

/// The present simulated time.
inline Picoseconds now_ps() { return sc_core::sc_time_stamp().value(); }

inline sc_core::sc_time to_sc_time(Picoseconds time) { return sc_core::sc_time::from_value(time); }

/// Nanoseconds to picoseconds, rounded to the nearest.
constexpr Picoseconds from_ns(double ns) { return static_cast<Picoseconds>(ns * kPicosecondsPerNanosecond + 0.5); }

}  // namespace rnic::model
