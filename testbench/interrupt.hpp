#pragma once

#include <cstdint>
#include <stdexcept>

namespace rnic::testbench {

/// The user has ended the run with Ctrl-C before it was done.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(std::uint64_t at_ns) : std::runtime_error("interrupted"), at_ns_(at_ns) {}
  /// Simulated time since the reset. The applications had some more to come to their end.
  [[nodiscard]] std::uint64_t at_ns() const { return at_ns_; }

 private:
  std::uint64_t at_ns_;
};

/// From now on the first SIGINT is only noted, for a command that ends with a report of what was done by then. The
/// second one ends the process as usual.
void catch_interrupts();
/// A SIGINT has been noted.
[[nodiscard]] bool interrupted();

}  // namespace rnic::testbench
