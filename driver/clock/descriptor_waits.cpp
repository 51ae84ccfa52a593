// Functions of the C library that wait for descriptors, for a limited time.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "driver/clock/program_clock.hpp"
#include "driver/clock/real.hpp"
#include "driver/clock/timed_wait.hpp"

using namespace rnic::clock;

namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;

bool found_nothing(int result) { return result == 0; }

/// In milliseconds as poll wants them: not less.
int to_milliseconds(std::uint64_t ns) {
  return static_cast<int>(std::min<std::uint64_t>((ns + kMillisecondNs - 1) / kMillisecondNs, INT_MAX));
}

/// `wait(left)` of a function with a limit of `limit_ns`; nothing to wait for where there is no clock or no limit.
template <typename Attempt>
int limited(std::uint64_t limit_ns, const Attempt& attempt) {
  ProgramClock* const clock = limit_ns != 0 ? ProgramClock::get() : nullptr;
  if (clock == nullptr) return attempt(limit_ns);
  return wait_until(*clock, from_now(*clock, limit_ns), attempt, found_nothing);
}

/// The sets of select are where it takes its question from and puts its answer.
class Sets {
 public:
  Sets(int most, fd_set* reads, fd_set* writes, fd_set* errors)
      : bytes_((most + NFDBITS - 1) / NFDBITS * sizeof(fd_mask)) {
    fd_set* const sets[] = {reads, writes, errors};
    for (std::size_t i = 0; i < 3; ++i) {
      sets_[i] = sets[i];
      if (sets[i] != nullptr && fits()) std::memcpy(&asked_[i], sets[i], bytes_);
    }
  }
  /// A program may have more descriptors than fd_set has, in memory of another size.
  [[nodiscard]] bool fits() const { return bytes_ <= sizeof(fd_set); }
  void ask_again() {
    for (std::size_t i = 0; i < 3; ++i) {
      if (sets_[i] != nullptr) std::memcpy(sets_[i], &asked_[i], bytes_);
    }
  }

 private:
  std::size_t bytes_;
  fd_set* sets_[3];
  fd_set asked_[3];
};

}  // namespace

extern "C" {

int poll(pollfd* what, nfds_t count, int timeout) {
  if (timeout <= 0) return RNIC_REAL(poll)(what, count, timeout);
  return limited(static_cast<std::uint64_t>(timeout) * kMillisecondNs,
                 [&](std::uint64_t left) { return RNIC_REAL(poll)(what, count, to_milliseconds(left)); });
}

int ppoll(pollfd* what, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (timeout == nullptr || !valid(*timeout)) return RNIC_REAL(ppoll)(what, count, timeout, mask);
  return limited(to_ns(*timeout), [&](std::uint64_t left) {
    const timespec time = to_timespec(left);
    return RNIC_REAL(ppoll)(what, count, &time, mask);
  });
}

int epoll_pwait(int epoll, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  if (timeout <= 0) return RNIC_REAL(epoll_pwait)(epoll, events, most, timeout, mask);
  return limited(static_cast<std::uint64_t>(timeout) * kMillisecondNs, [&](std::uint64_t left) {
    return RNIC_REAL(epoll_pwait)(epoll, events, most, to_milliseconds(left), mask);
  });
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  return epoll_pwait(epoll, events, most, timeout, nullptr);
}

int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  if (timeout == nullptr || !valid(*timeout)) return RNIC_REAL(epoll_pwait2)(epoll, events, most, timeout, mask);
  return limited(to_ns(*timeout), [&](std::uint64_t left) {
    const timespec time = to_timespec(left);
    return RNIC_REAL(epoll_pwait2)(epoll, events, most, &time, mask);
  });
}

int pselect(int most, fd_set* reads, fd_set* writes, fd_set* errors, const timespec* timeout, const sigset_t* mask) {
  Sets sets(most, reads, writes, errors);
  if (timeout == nullptr || !valid(*timeout) || most < 0 || !sets.fits())
    return RNIC_REAL(pselect)(most, reads, writes, errors, timeout, mask);
  return limited(to_ns(*timeout), [&](std::uint64_t left) {
    sets.ask_again();
    const timespec time = to_timespec(left);
    return RNIC_REAL(pselect)(most, reads, writes, errors, &time, mask);
  });
}

/// What is left of the limit is said as Linux does.
int select(int most, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  if (timeout == nullptr || timeout->tv_sec < 0 || timeout->tv_usec < 0)
    return RNIC_REAL(select)(most, reads, writes, errors, timeout);
  const timespec limit = to_timespec(static_cast<std::uint64_t>(timeout->tv_sec) * kSecondNs +
                                     static_cast<std::uint64_t>(timeout->tv_usec) * 1000);
  ProgramClock* const clock = ProgramClock::get();
  const std::uint64_t end = clock != nullptr ? from_now(*clock, to_ns(limit)) : 0;
  if (clock == nullptr) return RNIC_REAL(select)(most, reads, writes, errors, timeout);
  const int result = pselect(most, reads, writes, errors, &limit, nullptr);
  const int error = errno;
  const std::uint64_t now = clock->now_ns();
  const timespec left = to_timespec(now < end ? end - now : 0);
  *timeout = {left.tv_sec, left.tv_nsec / 1000};
  errno = error;
  return result;
}

}  // extern "C"
