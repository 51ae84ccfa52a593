#pragma once

#include <cstdint>

namespace rnic::testbench {

/// Holds simulated time back to the time outside: in any stretch of it no more simulated time passes than time outside,
/// and kMostNs. What simulated time has fallen behind is not caught up: a deadline in the machine comes no sooner for
/// it than who is outside expects.
class Pace {
 public:
  /// How much simulated time may pass at once after a rest.
  static constexpr std::uint64_t kMostNs = 100'000;

  /// Nothing passed ahead of the time outside until `outside_ns`.
  void begin(std::uint64_t outside_ns);
  /// How long to wait, at `outside_ns`, before simulated time may pass; 0: not at all.
  [[nodiscard]] std::uint64_t early_ns(std::uint64_t outside_ns);
  /// So much simulated time passes.
  void passes(std::uint64_t ns) { spent_ns_ += ns; }

 private:
  std::uint64_t since_ns_ = 0;  ///< Time outside from which on it is counted
  std::uint64_t spent_ns_ = 0;  ///< Simulated time since then
};

}  // namespace rnic::testbench
