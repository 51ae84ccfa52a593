// Functions of the C library that wait for other threads until an instant of a clock.
#include <pthread.h>
#include <semaphore.h>

#include <cerrno>

#include "driver/clock/program_clock.hpp"
#include "driver/clock/real.hpp"
#include "driver/clock/timed_wait.hpp"
#include "driver/remote/outside_time.hpp"

using namespace rnic::clock;

namespace {

/// `attempt(clock, instant)` until `instant` of the program's clock; a time-out is repeated until that instant.
template <typename Attempt, typename TimedOut>
int until(clockid_t which, const timespec* instant, const Attempt& attempt, const TimedOut& timed_out) {
  ProgramClock* const clock = ProgramClock::get();
  const auto now = clock != nullptr ? clock->read(which) : std::nullopt;
  if (!now || instant == nullptr || !valid(*instant)) return attempt(which, instant);
  const std::uint64_t wanted = to_ns(*instant);
  const auto once = [&](std::uint64_t left) {
    const timespec outside = to_timespec(rnic::remote::outside_monotonic_ns() + left);
    return attempt(CLOCK_MONOTONIC, &outside);
  };
  return wait_until(*clock, from_now(*clock, wanted > *now ? wanted - *now : 0), once, timed_out);
}

bool says_timeout(int result) { return result == ETIMEDOUT; }
bool fails_with_timeout(int result) { return result != 0 && errno == ETIMEDOUT; }

/// Where the GNU C library keeps the clock of a condition variable (pthread_condattr_setclock): in its second bit.
clockid_t clock_of(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

}  // namespace

extern "C" {

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t which,
                           const timespec* instant) {
  return until(
      which, instant,
      [&](clockid_t clock, const timespec* end) {
        return RNIC_REAL(pthread_cond_clockwait)(condition, mutex, clock, end);
      },
      says_timeout);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* instant) {
  return pthread_cond_clockwait(condition, mutex, clock_of(condition), instant);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t which, const timespec* instant) noexcept {
  return until(
      which, instant,
      [&](clockid_t clock, const timespec* end) { return RNIC_REAL(pthread_mutex_clocklock)(mutex, clock, end); },
      says_timeout);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* instant) noexcept {
  return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, instant);
}

int sem_clockwait(sem_t* semaphore, clockid_t which, const timespec* instant) {
  return until(
      which, instant,
      [&](clockid_t clock, const timespec* end) { return RNIC_REAL(sem_clockwait)(semaphore, clock, end); },
      fails_with_timeout);
}

int sem_timedwait(sem_t* semaphore, const timespec* instant) {
  return sem_clockwait(semaphore, CLOCK_REALTIME, instant);
}

}  // extern "C"
