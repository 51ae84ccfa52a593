#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "testbench/tool/machine_process.hpp"

namespace rnic::testbench {

/// A program that `rnic exec` has run.
struct RunProgram {
  std::string role;  ///< "server", "client"; empty: it was the only one
  unsigned host{};
  std::vector<std::string> command;
  pid_t process = -1;        ///< -1: it was not started
  int code{};                ///< Its exit code, or 128 and the number of the signal that ended it
  bool ended_by_us = false;  ///< It did not end by itself when the other program had
};

/// What `rnic exec` says of its programs when they have ended.
class ExecRun {
 public:
  explicit ExecRun(std::vector<RunProgram> programs) : programs_(std::move(programs)) {}

  /// The exit code of `rnic exec`: that of the last program that failed; 0 when none did. A server that was ended by us
  /// has not failed.
  [[nodiscard]] int code() const;
  /// Prints to `out` what the simulated hardware did for them, and why the first request failed, if one did. Nothing
  /// for programs that posted no request.
  void print(const MachineProcess& machine, std::FILE* out) const;
  /// Tells a machine of our own what it needs for its report.
  void tell(const MachineProcess& machine, const std::string& command_line) const;

 private:
  std::vector<RunProgram> programs_;
};

}  // namespace rnic::testbench
