#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "driver/remote/connection.hpp"

namespace rnic::remote {

/// Simulated time as a process reads it. Thread safe, and safe in a signal handler.
///
/// It passes while something is under way in the machine, and while a process waits for it (`Wait`): in a machine that
/// rests as fast as the time outside. What a process computes takes none. In order with everything else that the
/// process sees:
///
/// 1. It never goes back, for no thread.
/// 2. What the device has written is not later than what is read behind it: the machine shows the end of a slice of
///    time before it simulates the slice.
/// 3. A doorbell that is rung behind a reading reaches the device no sooner than that.
/// 4. A loop until some instant ends: after kVainReadings readings of the same time, in a machine that rests, each
/// reading
///    costs kReadingNs. That is the process's own time (its lead): the machine does not pass it, so that a process that
///    reads the clock in a loop moves no other's, and all further readings of the process are later by it.
///
/// But for their leads all processes of a machine read the same time.
///
/// When the machine has ended it goes on with the time outside.
class SimulatedTime {
 public:
  /// `connection` outlives it.
  explicit SimulatedTime(Connection& connection, std::uint64_t lead_ns = 0)
      : connection_(connection), memory_(connection.memory()), lead_ns_(lead_ns) {}
  SimulatedTime(const SimulatedTime&) = delete;
  SimulatedTime& operator=(const SimulatedTime&) = delete;

  /// In ns since the machine began, and the lead.
  [[nodiscard]] std::uint64_t now_ns();
  [[nodiscard]] std::uint64_t lead_ns() const { return lead_ns_.load(); }

  /// The process waits: as long as this object is, a machine with nothing else to do lets time pass until `instant_ns`.
  class Wait {
   public:
    Wait(SimulatedTime& time, std::uint64_t instant_ns) : time_(time), instant_ns_(instant_ns) { begin(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait();
    /// Where too many waited when this was made (kMostWaits), it may begin now.
    void begin();

   private:
    SimulatedTime& time_;
    const std::uint64_t instant_ns_;
    std::size_t place_ = kMostWaits;  ///< kMostWaits: none
  };

 private:
  /// So many readings of the same time cost nothing: a program that posts many requests reads the clock at each, before
  /// the machine has taken the first. Behind them each costs kReadingNs in a machine that rests; in one that simulates
  /// the processor is the machine's for a while.
  static constexpr std::uint32_t kVainReadings = 4096;
  static constexpr std::uint64_t kReadingNs = 100;
  /// Of one process, at a time.
  static constexpr std::size_t kMostWaits = 64;

  void show_awaited();
  [[nodiscard]] std::uint64_t latest(std::uint64_t now);
  [[nodiscard]] std::uint64_t after_the_end();
  [[nodiscard]] std::uint64_t read_in_vain(std::uint64_t now);

  Connection& connection_;
  ConnectionMemory& memory_;
  std::atomic<std::uint64_t> lead_ns_;                               ///< What readings have cost
  std::atomic<std::uint64_t> told_ns_{};                             ///< The latest time that anyone has read
  std::atomic<std::uint32_t> vain_{};                                ///< Readings since then
  std::array<std::atomic<std::uint64_t>, kMostWaits> awaited_ns_{};  ///< Of each Wait; 0: of none
  std::atomic<std::uint64_t> ended_at_ns_{};  ///< CLOCK_MONOTONIC when the end of the machine was seen; 0: it was not
};

}  // namespace rnic::remote
