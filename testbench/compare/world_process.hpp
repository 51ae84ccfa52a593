#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "testbench/compare/program_runner.hpp"
#include "testbench/json_process.hpp"

namespace rnic::testbench {

/// A child process with a world in it, which runs programs.
class WorldProcess {
 public:
  WorldProcess(WorldOptions options, PlantedDifference planted)
      : options_(std::move(options)), planted_(planted), process_([this](JsonChannel& parent) { work(parent); }) {}

  /// Gives it a program; `take` waits for what came of it. Between the two others may be given theirs. Throws
  /// std::system_error when there can be no process.
  void give(const RandomProgram& program, bool with_details = false);
  /// What the process reports, or {"failures": [why not]} when it has ended.
  [[nodiscard]] nlohmann::json take();

 private:
  void work(JsonChannel& parent) const;

  WorldOptions options_;
  PlantedDifference planted_;
  JsonProcess process_;
};

}  // namespace rnic::testbench
