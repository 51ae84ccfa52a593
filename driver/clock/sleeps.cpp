// Functions of the C library that let time pass.
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "driver/clock/program_clock.hpp"
#include "driver/clock/real.hpp"
#include "driver/clock/timed_wait.hpp"

using namespace rnic::clock;

namespace {

/// Returns 0, or the error of clock_nanosleep; what is left then in `left`, if there is one.
int sleep_until(ProgramClock& clock, std::uint64_t end_ns, timespec* left) {
  const auto attempt = [](std::uint64_t ns) {
    const timespec time = to_timespec(ns);
    return RNIC_REAL(clock_nanosleep)(CLOCK_MONOTONIC, 0, &time, nullptr);
  };
  const int error = wait_until(clock, end_ns, attempt, [](int result) { return result == 0; });
  if (error != 0 && left != nullptr) {
    const std::uint64_t now = clock.now_ns();
    *left = to_timespec(now < end_ns ? end_ns - now : 0);
  }
  return error;
}

}  // namespace

extern "C" {

int clock_nanosleep(clockid_t which, int flags, const timespec* time, timespec* left) {
  ProgramClock* const clock = ProgramClock::get();
  const auto now = clock != nullptr ? clock->read(which) : std::nullopt;
  if (!now || time == nullptr || !valid(*time)) return RNIC_REAL(clock_nanosleep)(which, flags, time, left);
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  std::uint64_t ns = to_ns(*time);
  if (absolute) ns = ns > *now ? ns - *now : 0;
  return sleep_until(*clock, from_now(*clock, ns), absolute ? nullptr : left);
}

int nanosleep(const timespec* time, timespec* left) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, left);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int usleep(useconds_t us) {
  const timespec time = to_timespec(std::uint64_t{us} * 1000);
  return nanosleep(&time, nullptr);
}

unsigned sleep(unsigned seconds) {
  const timespec time{static_cast<time_t>(seconds), 0};
  timespec left{};
  return nanosleep(&time, &left) == 0 ? 0 : static_cast<unsigned>(left.tv_sec) + (left.tv_nsec != 0 ? 1u : 0u);
}

}  // extern "C"
