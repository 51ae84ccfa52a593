#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "driver/kmd/port_tables.hpp"
#include "testbench/input_files.hpp"
#include "testbench/server/outside/frame_socket.hpp"
#include "testbench/server/process_quota.hpp"
#include "testbench/server/toml_table.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// A machine: its world, and what its hosts are called by.
struct MachineDescription {
  WorldOptions world;
  /// Own addresses of each host beside the link-local one; a host beyond the last has its default.
  std::vector<std::vector<kmd::Gid>> gids;
  std::vector<FrameSocketOptions> sockets;  ///< At the free ends of the world
  ProcessQuota quota;
  std::set<std::size_t> guests;  ///< Hosts that are guests', by number
  std::uint64_t mtu{};           ///< Of every port, bytes; 0: what its device can

  [[nodiscard]] std::vector<kmd::Gid> gids_of(std::size_t host) const;
};

/// Reads a machine file (docs/machine_file.md) into `machine`, which stays as it is where the file says nothing. Throws
/// MachineFileError; `machine` is unchanged then. The file, and those that it names, come from `files`.
void load_machine(const std::filesystem::path& file, MachineDescription& machine, InputFiles& files);
/// The same from text; `name` stands for the file in messages, and files that it names are in `folder`.
void parse_machine(const std::string& text, const std::string& name, const std::filesystem::path& folder,
                   MachineDescription& machine, InputFiles& files);

}  // namespace rnic::testbench
