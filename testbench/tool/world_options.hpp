#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>

#include "testbench/drawn_world.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// The world of a command that simulates.
struct WorldArguments {
  WorldOptions options;
  std::optional<std::uint64_t> drawn_from;  ///< --world

  /// The options, or with --world what is drawn, which is printed.
  [[nodiscard]] DrawnWorld draw() const;
};

/// The options that every command which simulates has: --seed, --world, --link-gbps, --link-delay-ns, --pcie-read-ns.
void add_world_options(CLI::App& command, WorldArguments& world);
/// --timeline FILE, --timeline-window FROM:TO (docs/timeline.md). A window that is none is wrong use.
void add_timeline_options(CLI::App& command, WorldOptions& options);
/// --faults FILE: a scenario (docs/scenarios.md), added to `options` when the command line is read. A file that is
/// wrong is wrong use.
void add_faults_option(CLI::App& command, WorldOptions& options);

}  // namespace rnic::testbench
