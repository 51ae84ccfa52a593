#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>

#include "driver/remote/connection.hpp"
#include "driver/remote/simulated_time.hpp"

namespace rnic::clock {

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// The clocks of the system as a program has them whose time is that of a machine (docs/simulated_clock.md): each shows
/// what it showed outside when the machine began, and the simulated time since then.
class ProgramClock {
 public:
  /// Of the host that RNIC_HOST names. Null: there is none, or it does not answer; the program keeps the system's
  /// clocks then. Connects at the first call, which must not be in a signal handler.
  static ProgramClock* get();
  ProgramClock(std::shared_ptr<remote::Connection> connection, std::uint64_t lead_ns);

  /// A clock of the system in ns. Nothing: one that does not count simulated time (of a processor's time, or unknown).
  [[nodiscard]] std::optional<std::uint64_t> read(clockid_t clock);
  /// Of the processor's counter, at kTicksPerNs.
  [[nodiscard]] std::uint64_t ticks() { return (now_ns() + begin_monotonic_ns_) * kTicksPerNs; }
  /// Simulated time since the machine began, in ns.
  [[nodiscard]] std::uint64_t now_ns() { return time_.now_ns(); }
  [[nodiscard]] remote::SimulatedTime& time() { return time_; }

  /// No processor has this rate, or perftest would take the rate in /proc/cpuinfo instead where they are within 2 %.
  static constexpr std::uint64_t kTicksPerNs = 10;

 private:
  const std::shared_ptr<remote::Connection> connection_;
  remote::SimulatedTime time_;
  const std::uint64_t begin_monotonic_ns_, begin_realtime_ns_;
  const std::uint64_t asleep_ns_;  ///< CLOCK_BOOTTIME less CLOCK_MONOTONIC
  const std::uint64_t leap_ns_;    ///< CLOCK_TAI less CLOCK_REALTIME
};

[[nodiscard]] inline timespec to_timespec(std::uint64_t ns) {
  return {static_cast<time_t>(ns / kSecondNs), static_cast<long>(ns % kSecondNs)};
}
/// Of a valid time that is not negative.
[[nodiscard]] inline std::uint64_t to_ns(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * kSecondNs + static_cast<std::uint64_t>(time.tv_nsec);
}
[[nodiscard]] inline bool valid(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < static_cast<long>(kSecondNs);
}

}  // namespace rnic::clock
