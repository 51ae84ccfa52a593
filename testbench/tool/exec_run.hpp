#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "testbench/tool/machine_process.hpp"

namespace rnic::testbench {

/// A program that `rnic exec` or `rnic linux` runs.
struct RunProgram {
  std::string role;  ///< "server", "client"; empty: it was the only one
  unsigned host{};
  std::vector<std::string> command;
  pid_t process = -1;        ///< -1: it was not started
  int code{};                ///< Its exit code, or 128 and the number of the signal that ended it
  bool ended_by_us = false;  ///< It did not end by itself when the other program had
};

/// What `rnic exec`, or `rnic linux`, says of its programs.
class ExecRun {
 public:
  /// `command`: "exec" or "linux".
  explicit ExecRun(std::vector<RunProgram> programs, std::string command = "exec")
      : programs_(std::move(programs)), command_(std::move(command)) {}

  /// The exit code of `rnic exec`: that of the last program that failed; 0 when none did. A server that was ended by us
  /// has not failed.
  [[nodiscard]] int code() const;
  /// Prints to `out` what the simulated hardware did for them, and why the first request failed, if one did. Nothing
  /// for programs that posted no request.
  void print(const MachineProcess& machine, std::FILE* out) const;
  /// What a machine of our own needs for its report before the programs run (`rnic serve --exec`).
  [[nodiscard]] std::string plan() const;
  /// Reports to a machine of our own how they ended.
  void tell(const MachineProcess& machine) const;

 private:
  /// {"command", "command_line", "programs"}, where `of` says the rest of each program.
  template <typename Of>
  [[nodiscard]] nlohmann::ordered_json describe(Of of) const;

  std::vector<RunProgram> programs_;
  std::string command_;
};

}  // namespace rnic::testbench
