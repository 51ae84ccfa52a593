#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

class Vrnic_top;

namespace rnic::testbench {

/// Holds a NIC to what it says of its rest: a clock that stands still would have changed nothing. It compares every
/// signal of the design, and leaves the NIC as it was.
class StateCheck {
 public:
  explicit StateCheck(Vrnic_top& top) : top_(top) {}

  /// Makes the clock edge by calling `edge`, and makes it once more with the clock of every room. Returns the signals
  /// that differ, at most 20, by their names in the hierarchy. The clock is low before, and high afterwards.
  [[nodiscard]] std::vector<std::string> edge(const std::function<void()>& edge);
  /// The signals that one more edge would change, with the clock of every room. The clock is low.
  [[nodiscard]] std::vector<std::string> next_edge();

 private:
  using State = std::vector<std::uint8_t>;
  void save(State& to) const;
  void restore(const State& state);
  void open_edge();

  Vrnic_top& top_;
  // Megabytes, which the system would clear anew for each check.
  State before_, opened_, after_;
};

}  // namespace rnic::testbench
