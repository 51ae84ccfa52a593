#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testbench/lockstep/lockstep_run.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/machine_outputs.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct LockstepArguments {
  WorldArguments world;
  MachineOutputs outputs;
  double limit_seconds = 60;
  std::vector<std::string> programs;  ///< As they stand behind "--"
};

/// "PROGRAM ARGS", or "SERVER ARGS -- CLIENT ARGS", loaded.
std::vector<LoadedProgram> load_programs(const std::vector<std::string>& words) {
  std::vector<LoadedProgram> programs;
  for (auto begin = words.begin();; ++begin) {
    const auto end = std::find(begin, words.end(), "--");
    if (begin == end || programs.size() == 2)
      throw UsageError("one or two programs: rnic lockstep [options] -- PROGRAM ARGS [-- CLIENT ARGS]");
    try {
      programs.emplace_back(std::vector<std::string>(begin, end));
    } catch (const LoadError& error) {
      throw UsageError(error.what());
    }
    if (end == words.end()) return programs;
    begin = end;
  }
}

void tell(const LockstepOutcome& outcome) {
  if (outcome.codes.size() == 2 && !outcome.codes[1]) fmt::print("rnic: the server has ended before it listened\n");
  if (outcome.server_stayed) fmt::print("rnic: the server stays: it is ended\n");
}

int run_lockstep_command(LockstepArguments& arguments) {
  auto programs = load_programs(arguments.programs);
  arguments.outputs.check(arguments.world.options);
  DrawnWorld drawn = arguments.world.draw();
  const auto limit_ns = static_cast<std::uint64_t>(arguments.limit_seconds * 1e9);
  // A program may wait as long as it likes.
  drawn.options.hang_ns = limit_ns;
  arguments.outputs.report.observe(drawn.options);
  World world(drawn.options);
  const auto outcome = arguments.outputs.report.watch(world, [&] { return run_lockstep(world, programs, limit_ns); });
  tell(outcome);
  const int code = outcome.code();
  arguments.outputs.write(world, machine_figures(world, drawn.options.seed), code == 0,
                          fmt::format("the programs have ended with {}", code));
  return code;
}

}  // namespace

void add_lockstep_command(CLI::App& tool, std::vector<std::string> programs, std::function<int()>& action) {
  auto arguments = std::make_shared<LockstepArguments>();
  arguments->programs = std::move(programs);
  auto* command = add_command(
      tool, "lockstep",
      ", in one process with the NICs: rnic lockstep [options] -- PROGRAM ARGS; or two that belong together, on two "
      "hosts: rnic lockstep -- SERVER ARGS -- CLIENT ARGS. PROGRAM is what PROGRAM.so has (docs/examples.md)");
  command
      ->add_option("--limit", arguments->limit_seconds,
                   "Simulated seconds after which programs that have not ended are given up")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  add_world_options(*command, arguments->world);
  add_faults_option(*command, arguments->world);
  arguments->outputs.add_options(*command, arguments->world.options);
  command->callback([arguments, &action] { action = [arguments] { return run_lockstep_command(*arguments); }; });
}

}  // namespace rnic::testbench
