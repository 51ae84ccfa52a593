#pragma once

#include <sys/types.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "testbench/compare/program_runner.hpp"

namespace rnic::testbench {

/// A child process with a world in it, which runs programs.
class WorldProcess {
 public:
  WorldProcess(WorldOptions options, PlantedDifference planted) : options_(std::move(options)), planted_(planted) {}
  ~WorldProcess() { stop(); }
  WorldProcess(const WorldProcess&) = delete;
  WorldProcess& operator=(const WorldProcess&) = delete;

  /// Gives it a program; `take` waits for what came of it. Between the two others may be given theirs. Throws
  /// std::system_error when there can be no process.
  void give(const RandomProgram& program, bool with_details = false);
  /// What the process reports, or {"failures": [why not]} when it has ended.
  [[nodiscard]] nlohmann::json take();

 private:
  void start();
  void stop();
  [[noreturn]] void work(int from, int to) const;

  WorldOptions options_;
  PlantedDifference planted_;
  pid_t child_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace rnic::testbench
