#pragma once

#include <CLI/CLI.hpp>

#include "testbench/world.hpp"

namespace rnic::testbench {

/// The options that every command which simulates has: --seed, --link-gbps, --link-delay-ns, --pcie-read-ns.
void add_world_options(CLI::App& command, WorldOptions& options);
/// --faults FILE: a scenario (docs/scenarios.md), added to `options` when the command line is read. A file that is
/// wrong is wrong use.
void add_faults_option(CLI::App& command, WorldOptions& options);

}  // namespace rnic::testbench
