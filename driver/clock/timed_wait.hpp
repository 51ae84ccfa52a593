#pragma once

#include <algorithm>
#include <cstdint>

#include "driver/clock/program_clock.hpp"

namespace rnic::clock {

/// Waits until `end_ns` of the program's simulated time at the latest. `attempt(left_ns)` waits for so long outside,
/// and returns what the function returns; `timed_out(result)`: it found nothing in that time. Simulated time never
/// passes faster than time outside, so none of these waits is longer than it may be. The last attempt has 0 left.
template <typename Attempt, typename TimedOut>
auto wait_until(ProgramClock& clock, std::uint64_t end_ns, const Attempt& attempt, const TimedOut& timed_out) {
  remote::SimulatedTime::Wait wait(clock.time(), end_ns);
  for (;; wait.begin()) {
    const std::uint64_t now = clock.now_ns();
    const std::uint64_t left = now < end_ns ? end_ns - now : 0;
    const auto result = attempt(left);
    if (left == 0 || !timed_out(result)) return result;
  }
}

/// An instant that is `ns` from now, in the program's simulated time.
inline std::uint64_t from_now(ProgramClock& clock, std::uint64_t ns) {
  const std::uint64_t now = clock.now_ns();
  return ns > ~std::uint64_t{0} - now ? ~std::uint64_t{0} : now + ns;
}

}  // namespace rnic::clock
