// Functions of the C library that read a clock.
#include <sys/time.h>
#include <sys/timeb.h>

#include <cerrno>
#include <cstddef>

#include "driver/clock/program_clock.hpp"
#include "driver/remote/outside_time.hpp"

using namespace rnic::clock;

namespace {

/// CLOCK_REALTIME, of the system where the program has no other.
std::uint64_t realtime_ns() {
  ProgramClock* const clock = ProgramClock::get();
  return clock != nullptr ? clock->read(CLOCK_REALTIME).value_or(0) : rnic::remote::outside_clock_ns(CLOCK_REALTIME);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t which, timespec* time) noexcept {
  ProgramClock* const clock = ProgramClock::get();
  const auto now = clock != nullptr ? clock->read(which) : std::nullopt;
  // By the system call: the C library's way to it reads the processor's counter.
  if (!now) return static_cast<int>(syscall(SYS_clock_gettime, which, time));
  *time = to_timespec(*now);
  return 0;
}

int gettimeofday(timeval* time, void* zone) noexcept {
  if (zone != nullptr) *static_cast<struct timezone*>(zone) = {};
  const std::uint64_t now = realtime_ns();
  *time = {static_cast<time_t>(now / kSecondNs), static_cast<long>(now % kSecondNs / 1000)};
  return 0;
}

time_t time(time_t* to) noexcept {
  const auto now = static_cast<time_t>(realtime_ns() / kSecondNs);
  if (to != nullptr) *to = now;
  return now;
}

int timespec_get(timespec* time, int base) noexcept {
  if (base != TIME_UTC) return 0;
  *time = to_timespec(realtime_ns());
  return base;
}

}  // extern "C"
