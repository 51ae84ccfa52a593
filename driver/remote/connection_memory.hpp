#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "driver/remote/doorbell_ring.hpp"
#include "driver/remote/machine_clock.hpp"

namespace rnic::remote {

/// Clients of one connection.
inline constexpr std::size_t kMostClients = 64;

/// What process and machine share for a connection, in a memfd. All zero at the beginning.
struct ConnectionMemory {
  alignas(64) CountedWord wakes;                ///< Machine::wake_count
  alignas(64) CountedWord writes;               ///< The device has written to rings of the process
  alignas(64) std::atomic<std::uint32_t> gone;  ///< Not 0: the machine has ended
  std::atomic<std::uint32_t> asleep;            ///< Not 0: a doorbell needs the bell
  MachineClock clock;
  MachineClock simulated;                 ///< Simulated time only (SimulatedTime)
  std::atomic<std::uint64_t> awaited_ns;  ///< The process waits until then, in simulated time
  std::uint64_t monotonic_begin_ns;       ///< CLOCK_MONOTONIC outside when simulated time began; of all processes
  std::uint64_t realtime_begin_ns;        ///< CLOCK_REALTIME at the same instant
  alignas(64) std::array<std::atomic<std::uint32_t>, kMostClients> status;  ///< Of each client: OpenContext
  DoorbellRing doorbells;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace rnic::remote
