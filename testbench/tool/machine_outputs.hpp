#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "testbench/tool/report_file.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// What a machine leaves: --pcap, --trace and what belongs to it, --timeline, --report, --json.
struct MachineOutputs {
  ReportFile report;
  std::string json;
  std::string command_name;  ///< Of the command with these options

  void add_options(CLI::App& command, WorldOptions& options);
  /// Throws UsageError when one of them cannot be written.
  void check(const WorldOptions& options) const;
  /// Behind the run: its figures, and how it ended. Throws UsageError, or std::runtime_error.
  void write(World& world, const nlohmann::ordered_json& figures, bool good, const std::string& outcome);
  /// The same of a run whose outcome is in the report already.
  void write(World& world, const nlohmann::ordered_json& figures);
};

/// What a machine has come to. They depend on what is simulated alone.
[[nodiscard]] nlohmann::ordered_json machine_figures(World& world, std::uint64_t seed);

}  // namespace rnic::testbench
