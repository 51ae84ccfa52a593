#include "driver/clock/program_clock.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "driver/remote/machine_socket.hpp"
#include "driver/remote/outside_time.hpp"

namespace rnic::clock {
namespace {

std::atomic<ProgramClock*> g_clock{};
std::atomic<bool> g_begun{};

/// Never destroyed: the program may read a clock until its last instruction.
ProgramClock* connect(std::uint64_t lead_ns) {
  const char* const host = std::getenv("RNIC_HOST");
  if (host == nullptr || *host == '\0') return nullptr;
  auto connection = remote::Connection::open(host, remote::Purpose::kClock);
  if (connection) return new ProgramClock(connection.take(), lead_ns);
  const auto why = remote::why_no_machine(connection.error());
  std::fprintf(stderr, "librnic_clock: host %s: %.*s; the program has the system's clocks\n", host,
               static_cast<int>(why.size()), why.data());
  return nullptr;
}

/// A child of fork outlives its parent, and with it the parent's connection.
void connect_child() {
  if (ProgramClock* const own = connect(g_clock.load()->time().lead_ns())) g_clock.store(own);
}

}  // namespace

ProgramClock* ProgramClock::get() {
  if (ProgramClock* const clock = g_clock.load(std::memory_order_acquire)) return clock;
  // What connecting itself asks of the time is answered by the system.
  if (g_begun.exchange(true)) return nullptr;
  if (ProgramClock* const made = connect(0)) {
    g_clock.store(made, std::memory_order_release);
    // Behind the hooks of the connection, which runs them in the order in which they were made.
    pthread_atfork(nullptr, nullptr, connect_child);
  }
  return g_clock.load();
}

ProgramClock::ProgramClock(std::shared_ptr<remote::Connection> connection, std::uint64_t lead_ns)
    : connection_(std::move(connection)),
      time_(*connection_, lead_ns),
      begin_monotonic_ns_(connection_->memory().monotonic_begin_ns),
      begin_realtime_ns_(connection_->memory().realtime_begin_ns),
      asleep_ns_(remote::outside_clock_ns(CLOCK_BOOTTIME) - remote::outside_monotonic_ns()),
      leap_ns_((remote::outside_clock_ns(CLOCK_TAI) - remote::outside_clock_ns(CLOCK_REALTIME) + kSecondNs / 2) /
               kSecondNs * kSecondNs) {}

std::optional<std::uint64_t> ProgramClock::read(clockid_t clock) {
  switch (clock) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE: return begin_monotonic_ns_ + now_ns();
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM: return begin_monotonic_ns_ + asleep_ns_ + now_ns();
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM: return begin_realtime_ns_ + now_ns();
    case CLOCK_TAI: return begin_realtime_ns_ + leap_ns_ + now_ns();
    default: return std::nullopt;
  }
}

}  // namespace rnic::clock
