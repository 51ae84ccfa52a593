#pragma once

#include <cstddef>
#include <cstdint>
#include <systemc>
#include <vector>

namespace rnic::model {

/// Receives the message-signalled interrupts of one host and lets its threads wait for them.
class InterruptController {
 public:
  /// The address range of interrupt messages, as on an x86 machine.
  static constexpr std::uint64_t kAddress = 0xFEE0'0000;
  static constexpr std::uint64_t kAddressEnd = 0xFEF0'0000;

  [[nodiscard]] static constexpr bool is_message(std::uint64_t address) {
    return address >= kAddress && address < kAddressEnd;
  }

  explicit InterruptController(std::size_t vectors);

  [[nodiscard]] std::size_t vectors() const { return lines_.size(); }
  /// What a device writes to signal `vector`: this value to kAddress.
  [[nodiscard]] static constexpr std::uint32_t data(std::uint32_t vector) { return vector; }

  /// A message arrived. Data that names no vector is counted as spurious.
  void signal(std::uint32_t message_data);
  /// Waits until `vector` is signalled, at most `timeout`. Signals since the last wait that returned true count, once
  /// together; a signal wakes all that wait for its vector. False when the time is over. Called from a SystemC thread.
  /// Throws std::out_of_range for a vector that does not exist.
  [[nodiscard]] bool wait(std::uint32_t vector, const sc_core::sc_time& timeout);
  /// As wait with no time left.
  [[nodiscard]] bool take(std::uint32_t vector);

  /// Counts messages of every vector, and calls of wake.
  [[nodiscard]] std::uint64_t wake_count() const { return wake_count_; }
  /// Wakes all that wait in wait_for_wake.
  void wake();
  /// Waits until wake_count is no longer `seen`, without a limit or at most `timeout`; returns whether it is another.
  /// Called from a SystemC thread.
  bool wait_for_wake(std::uint64_t seen);
  [[nodiscard]] bool wait_for_wake(std::uint64_t seen, const sc_core::sc_time& timeout);

  /// Messages received for `vector` since the start.
  [[nodiscard]] std::uint64_t count(std::uint32_t vector) const { return lines_.at(vector).count; }
  [[nodiscard]] std::uint64_t spurious() const { return spurious_; }
  void clear();

 private:
  struct Line {
    std::uint64_t count = 0;
    std::uint64_t seen = 0;  ///< Value of count when a wait last returned true
    sc_core::sc_event event;
  };
  std::vector<Line> lines_;
  std::uint64_t spurious_ = 0;
  std::uint64_t wake_count_ = 0;
  sc_core::sc_event woken_;
};

}  // namespace rnic::model
