#pragma once

#include <string>
#include <vector>

#include "testbench/tool/exec_run.hpp"

namespace rnic::testbench {

/// Two programs that belong together, a server on host 0 and its client on host 1.
struct ProgramPair {
  std::vector<std::string> server;
  std::vector<std::string> client;
  std::string folder;  ///< For what a run leaves

  /// Makes the folder (a new one where none was named), and adds to the machine's arguments what has it leave capture,
  /// timeline, report and figures there, as far as nothing else was said. Throws UsageError.
  void make_folder(std::vector<std::string>& arguments);
  /// The two as they are before they run.
  [[nodiscard]] std::vector<RunProgram> programs() const;
  /// Runs both, the client once the server listens, with the lines of both on standard output, each behind its name.
  /// A server that stays when its client has gone is ended after a while.
  [[nodiscard]] std::vector<RunProgram> run(const MachineProcess& machine) const;
};

}  // namespace rnic::testbench
