#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

namespace rnic::remote {

/// A clock of the system in ns. By the system call: in a process with the simulated clock (docs/simulated_clock.md)
/// the C library's function tells simulated time, and the processor's counter traps.
inline std::uint64_t outside_clock_ns(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t outside_monotonic_ns() { return outside_clock_ns(CLOCK_MONOTONIC); }

}  // namespace rnic::remote
