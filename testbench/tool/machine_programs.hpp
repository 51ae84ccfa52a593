#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "testbench/report/queue_pair_figures.hpp"
#include "testbench/server/machine_server.hpp"
#include "testbench/tool/report_file.hpp"

namespace rnic::testbench {

/// What the programs on a machine did, and what `rnic exec` says of them (docs/server.md, docs/report.md).
class MachinePrograms {
 public:
  /// A world made with `options` is followed.
  void observe(WorldOptions& options);
  /// Takes the line "run JSON" of `rnic exec`: {"command", "command_line", "programs": [{"role", "host", "command",
  /// "process", "code", "ending", "good"}], "good", "text"}. Before the programs run it has no "good" and no "text".
  void take(nlohmann::ordered_json run) { run_ = std::move(run); }

  /// {"observed", "processes": [{"process", "name", "host", "ancestors", "connected", "objects", "calls",
  /// "refused_calls", "requests", "succeeded", "bytes", "goodput_gbps", "latency_median_ns", "latency_p99_ns",
  /// "diagnoses"}]} of the last processes. Times are simulated, since the reset; "requests" does not count Receives.
  [[nodiscard]] nlohmann::ordered_json figures(const MachineServer& server) const;

  /// `rnic exec` has reported how its programs ended.
  [[nodiscard]] bool ended() const { return run_ && run_->contains("good"); }
  /// Puts what the programs did into the report of the machine, and the command and the outcome of `rnic exec` as far
  /// as it has reported them.
  void fill(ReportFile& report, const MachineServer& server) const;

 private:
  /// So many processes are told to others: what they get has to fit into a socket.
  static constexpr std::size_t kMostTold = 32;

  QueuePairFigures figures_;
  bool observed_ = false;
  std::optional<nlohmann::ordered_json> run_;
};

}  // namespace rnic::testbench
