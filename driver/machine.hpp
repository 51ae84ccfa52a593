#pragma once

#include <cstdint>
#include <span>

#include "driver/result.hpp"

namespace rnic {

inline constexpr std::uint64_t kForever = ~std::uint64_t{0};  ///< No time limit

/// What no sound device does. The driver throws it away and goes on.
enum class DeviceOddity : std::uint8_t {
  kUnknownCompletion,  ///< A CQE of no queue pair that is known, or of no request that waits for one
  kUnknownEvent,       ///< An EQE of a type that there is not
};

/// What a process has of a machine and its device: its user access region (pages of BAR0), time, a way to wait. What a
/// kernel driver has beyond that is Device (driver/device.hpp), which also has the ordering rules and those of threads.
///
/// Waiting: whoever waits for something takes wake_count, looks whether it is there, and, if not, waits with that
/// count. Whoever brings it about calls wake afterwards; the device does so by its interrupts. Nothing between the look
/// and the wait is missed, and nobody looks again because time has passed.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// Posts a write to the 64-bit register at `offset` (multiple of 8) of BAR0. A process reaches its own UAR page only.
  virtual void write64(std::uint64_t offset, std::uint64_t value) = 0;
  /// Posts 64 bytes at `offset` (multiple of 64) of BAR0 (write combining).
  virtual void write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) = 0;

  /// Counts what may end a wait: MSI-X messages of all vectors, calls of wake, and the removal of the device.
  [[nodiscard]] virtual std::uint64_t wake_count() = 0;
  /// Counts, and ends every wait that is under way.
  virtual void wake() = 0;
  /// Waits until wake_count() is no longer `seen`, at most `timeout_ns` (kForever: without a limit). Returns whether it
  /// is another. False with kForever: the calling thread can wait no more, and removed() is true for it.
  [[nodiscard]] virtual bool wait(std::uint64_t seen, std::uint64_t timeout_ns) = 0;

  /// The machine has taken the device away: registers read all ones, it reaches no memory, and it will not come back.
  [[nodiscard]] virtual bool removed() = 0;

  /// Takes note of an oddity, for a log: the number is that of the queue pair, or the type of the event. Lets no time
  /// pass.
  virtual void report(DeviceOddity oddity, std::uint32_t number) = 0;

  /// Lets `ns` pass. In a simulated machine time passes only inside elapse, wait and read64: a driver call charges
  /// its stated cost (driver/costs.hpp), and a loop that polls must call elapse. On hardware it does nothing
  /// (the processor's own time passes).
  virtual void elapse(std::uint64_t ns) = 0;
  /// Somebody has polled and found nothing. A machine whose device shares the processors with who polls lets the device
  /// run, for a bounded time; on hardware it does nothing.
  virtual void relax() {}
  /// Time since an arbitrary start, never going back.
  [[nodiscard]] virtual std::uint64_t now_ns() = 0;
  /// Time of the device's own clock, which its time stamps count, never going back. It may stand still while the device
  /// rests.
  [[nodiscard]] virtual std::uint64_t device_ns() { return now_ns(); }
};

}  // namespace rnic
