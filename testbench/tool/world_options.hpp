#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "testbench/drawn_world.hpp"
#include "testbench/input_files.hpp"
#include "testbench/tool/pcie_options.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// The world of a command that simulates.
struct WorldArguments {
  WorldOptions options;
  std::optional<std::uint64_t> drawn_from;  ///< --world
  PcieArguments pcie;
  InputFiles files;  ///< That the command line names

  /// The options, or with --world what is drawn. What is not the ordinary world is printed.
  [[nodiscard]] DrawnWorld draw() const;
};

/// The options that every command which simulates has: --seed, --world, --link-gbps, --link-delay-ns, and those of
/// add_pcie_options. `world` stays where it is until the command line has been read.
void add_world_options(CLI::App& command, WorldArguments& world);
/// --timeline FILE, --timeline-window FROM:TO (docs/timeline.md). A window that is none is wrong use.
void add_timeline_options(CLI::App& command, WorldOptions& options);
/// --pcap, --trace, --trace-window, --trace-scope, --trace-mark. `of` is what the trace is of: "both NICs".
void add_file_options(CLI::App& command, WorldOptions& options, const std::string& of = "both NICs");
/// Throws UsageError when they cannot be written. Prints to stderr how large the waves will be about, if they are
/// wanted; `moved_bytes`: payload that the run moves, if that is known.
void check_files(const WorldOptions& options, std::optional<std::uint64_t> moved_bytes = {});
/// --json FILE (docs/results.md).
void add_json_option(CLI::App& command, std::string& path);
/// Prints the names of the files that a run has written: those of `options`, and of `others` that are not empty.
void print_written(const WorldOptions& options, const std::vector<std::string>& others);
/// For CLI::Option::transform of a number of bytes: 64k, 1M and 1G are KiB, MiB and GiB.
[[nodiscard]] CLI::Validator byte_size();
/// The same of what is counted: 64k, 1M and 1G are thousands, millions and thousand millions.
[[nodiscard]] CLI::Validator count_size();
/// --faults FILE: a scenario (docs/scenarios.md), added to the options when the command line is read. A file that is
/// wrong is wrong use.
void add_faults_option(CLI::App& command, WorldArguments& world);

}  // namespace rnic::testbench
