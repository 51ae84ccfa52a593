#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

#include "testbench/server/event_log_reader.hpp"

namespace rnic::testbench {

/// A machine that runs once more does not do what the log says.
class Divergence : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Holds what the simulation comes to against the log, one record after the other. In the simulation nothing is thrown:
/// what is wrong is kept until `check`.
class LogFollower {
 public:
  /// `log` outlives it.
  explicit LogFollower(EventLogReader& log) : log_(log) {}
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  /// The simulation has come to `met`, now. Gives what the log has of it, which is the next record; nothing, when it
  /// has something else or has ended, from then on always.
  [[nodiscard]] std::optional<LogRecord> follow(const LogRecord& met);
  /// As follow, for what the log need not have: nothing, when the next record is something else.
  [[nodiscard]] std::optional<LogRecord> follow_if(const LogRecord& met);

  /// Throws Divergence, or EventLogError, if there was reason to.
  void check() const;
  /// Throws Divergence: `met` is what the machine does instead of the next record.
  [[noreturn]] void diverge(const std::string& met);
  [[nodiscard]] EventLogReader& log() { return log_; }

 private:
  [[nodiscard]] std::string difference(const std::string& met, const LogRecord& next) const;

  EventLogReader& log_;
  bool lost_ = false;
  std::exception_ptr failure_;
};

}  // namespace rnic::testbench
