#include "testbench/tool/machine_arguments.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "testbench/server/machine_file.hpp"
#include "testbench/tool/sha256.hpp"

namespace rnic::testbench {

std::vector<std::string> MachineArguments::given() const {
  std::vector<std::string> line;
  for (const auto* option : simulating) {
    if (option->count() == 0) continue;
    const bool flag = option->get_items_expected_max() == 0;
    if (!option->get_positional()) line.push_back(option->get_name());
    if (!flag) line.insert(line.end(), option->results().begin(), option->results().end());
  }
  return line;
}

MachineServerOptions MachineArguments::server_options(std::size_t hosts) const {
  MachineServerOptions options;
  options.quota = quota;
  options.mtu = mtu;
  options.sockets = sockets;
  options.guests = guests;
  const MachineDescription named{.world = {}, .gids = gids, .sockets = {}, .quota = {}, .guests = {}, .mtu = {}};
  for (std::size_t i = 0; i < hosts; ++i) options.gids.push_back(named.gids_of(i));
  return options;
}

void add_machine_options(CLI::App& command, MachineArguments& arguments) {
  WorldOptions& options = arguments.world.options;
  const auto before = command.get_options();
  // First, so that options which are given stand above the file.
  command
      .add_option_function<std::string>(
          "machine",
          [&arguments](const std::string& file) {
            MachineDescription machine{
                .world = arguments.world.options, .gids = {}, .sockets = {}, .quota = {}, .guests = {}, .mtu = {}};
            try {
              load_machine(file, machine, arguments.world.files);
            } catch (const MachineFileError& error) {
              throw CLI::ValidationError("machine file", error.what());
            }
            arguments.world.options = machine.world;
            arguments.gids = machine.gids;
            arguments.sockets = machine.sockets;
            arguments.quota = machine.quota;
            arguments.mtu = machine.mtu;
            arguments.guests.insert(machine.guests.begin(), machine.guests.end());
          },
          "Machine file (docs/machine_file.md)")
      ->type_name("MACHINE.toml");
  command.add_option("--hosts", options.hosts, "Hosts; more than two hang on a switch")
      ->check(CLI::Range(std::size_t{2}, WorldOptions::kMostHosts))
      ->capture_default_str();
  add_world_options(command, arguments.world);
  // The programs need the processors, too, and a thread that waits for one costs both.
  options.threads = 1;
  const auto* const threads = command.get_option("--threads")
                                  ->description(
                                      "Threads that simulate, one a NIC at most; more than 1 for a machine with "
                                      "processors to spare [default: 1]");
  add_faults_option(command, arguments.world);
  for (const auto* option : command.get_options()) {
    if (option != threads && std::find(before.begin(), before.end(), option) == before.end())
      arguments.simulating.push_back(option);
  }
}

void read_machine_arguments(CLI::App& app, const EventLogHeader& log, MachineArguments& arguments) {
  arguments.world.files = InputFiles(log.files);
  add_machine_options(app, arguments);
  // It takes them from the last to the first.
  std::vector<std::string> line(log.arguments.rbegin(), log.arguments.rend());
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    throw EventLogError(fmt::format("the machine of the event log cannot be had again: {}", error.what()));
  }
}

std::string build_of_tool() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Sha256 sum;
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() != 0)
    sum.add({reinterpret_cast<const std::uint8_t*>(piece.data()), static_cast<std::size_t>(file.gcount())});
  return sum.finish();
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace rnic::testbench
