#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "testbench/tool/child_process.hpp"

namespace rnic::testbench {

/// A machine for programs: one that runs already, or one of its own (`rnic serve`), which ends with this object.
class MachineProcess {
 public:
  /// The machine whose sockets are in `folder`. Throws UsageError when none listens there, or another user's.
  static MachineProcess at(const std::string& folder);
  /// Starts one, with these arguments of `rnic serve`, for the programs of `plan` (ExecRun::plan). Throws UsageError
  /// when it does not begin.
  static MachineProcess start(const std::vector<std::string>& arguments, const std::string& plan);
  /// Whether a machine listens in `folder`. Throws UsageError for one of another user.
  [[nodiscard]] static bool listens(const std::string& folder);
  MachineProcess(MachineProcess&&) = default;
  MachineProcess& operator=(MachineProcess&&) = delete;
  ~MachineProcess();

  /// The socket of a host. Throws UsageError when there is no such host.
  [[nodiscard]] std::string socket(unsigned host) const;
  /// What a program needs to find itself on that host. Throws UsageError where it cannot have simulated time.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment(unsigned host) const;
  /// Programs that begin from now on have simulated time instead of the system's (docs/simulated_clock.md).
  void give_simulated_clock() { simulated_clock_ = true; }
  [[nodiscard]] bool simulated_clock() const { return simulated_clock_; }
  /// Where its sockets are.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Whether it is our own.
  [[nodiscard]] bool own() const { return own_.has_value(); }
  /// As ask_machine.
  [[nodiscard]] nlohmann::ordered_json ask(const std::string& question) const;
  /// Ends it, if it is our own, with its outputs; returns its exit code.
  int end();

 private:
  explicit MachineProcess(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::optional<ChildProcess> own_;
  bool simulated_clock_ = false;
};

}  // namespace rnic::testbench
