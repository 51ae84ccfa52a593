#pragma once

#include <CLI/CLI.hpp>

#include <set>
#include <string>
#include <vector>

#include "testbench/server/event_log.hpp"
#include "testbench/server/machine_server.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {

/// The machine of a command line: MACHINE.toml, --hosts, --faults, and what add_world_options has.
struct MachineArguments {
  WorldArguments world;
  std::vector<std::vector<kmd::Gid>> gids;     ///< Of the machine file
  std::vector<FrameSocketOptions> sockets;     ///< The same
  ProcessQuota quota;                          ///< The same
  std::uint64_t mtu{};                         ///< The same
  std::set<std::size_t> guests;                ///< The same
  std::vector<const CLI::Option*> simulating;  ///< That say what is simulated

  /// Those of them that were given, as a command line.
  [[nodiscard]] std::vector<std::string> given() const;
  /// Of a world of so many hosts; the rest is as it is.
  [[nodiscard]] MachineServerOptions server_options(std::size_t hosts) const;
};

/// Adds them. `arguments` stay where they are until the command line has been read.
void add_machine_options(CLI::App& command, MachineArguments& arguments);

/// What the command line said when a log was written, with the files of then; `app` is an empty one, and stays as long
/// as `arguments`. Throws EventLogError.
void read_machine_arguments(CLI::App& app, const EventLogHeader& log, MachineArguments& arguments);

/// SHA-256 of this program.
[[nodiscard]] std::string build_of_tool();
/// Every process needs some descriptors, and every ring that one maps.
void raise_descriptor_limit();

}  // namespace rnic::testbench
