#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "testbench/server/event_log_replay.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/machine_arguments.hpp"
#include "testbench/tool/machine_outputs.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

struct ReplayArguments {
  std::string log;
  WorldOptions options;  ///< Files, and threads
  MachineOutputs outputs;
};

std::unique_ptr<EventLogReader> open_log(const std::string& path) {
  try {
    return std::make_unique<EventLogReader>(path);
  } catch (const EventLogError& error) {
    throw UsageError(error.what());
  }
}

/// What the log says of the run must have come out once more. Throws Divergence.
void compare_figures(const std::string& logged, const nlohmann::ordered_json& figures) {
  const auto before = nlohmann::ordered_json::parse(logged, nullptr, false);
  if (before != figures)
    throw Divergence(fmt::format("it comes to {}; the log has {}", figures.dump(), before.dump(-1, ' ', true)));
}

/// What the run came to, in words. Throws as EventLogReplay::run.
std::string replay(World& world, EventLogReplay& run, const EventLogReader& log, std::uint64_t seed) {
  const auto outcome = run.run();
  if (outcome == EventLogReplay::Outcome::kCutOff) {
    world.flush_files();
    return fmt::format("{} events, to {} ns, where the log ends: {}", log.taken(), world.now_ns(),
                       log.cut_off() ? "it is not whole" : "its machine was killed");
  }
  world.judge();
  compare_figures(run.figures(), machine_figures(world, seed));
  return fmt::format("{} events, to {} ns: packets, completions and counters are those of the log", log.taken(),
                     world.now_ns());
}

[[noreturn]] void diverged(const EventLogReader& log, const std::string& how) {
  const bool other = log.header().build != build_of_tool();
  throw std::runtime_error(fmt::format("{}: it is not the run of the log: {}{}", log.path(), how,
                                       other ? fmt::format(" (the log is of another build, {}; {})",
                                                           log.header().version, log.header().build.substr(0, 12))
                                             : ""));
}

int run_replay_command(ReplayArguments& arguments) {
  const auto log = open_log(arguments.log);
  arguments.outputs.check(arguments.options);
  raise_descriptor_limit();
  CLI::App app("the machine of an event log");
  MachineArguments machine;
  machine.world.options = arguments.options;
  try {
    read_machine_arguments(app, log->header(), machine);
  } catch (const EventLogError& error) {
    throw UsageError(fmt::format("{}: {}", arguments.log, error.what()));
  }
  machine.world.options.threads = arguments.options.threads;
  DrawnWorld drawn = machine.world.draw();
  arguments.outputs.report.observe(drawn.options);
  World world(drawn.options);
  MachineServer server(world, machine.server_options(world.hosts()), print_error);
  EventLogReplay run(server, *log);
  std::string outcome;
  try {
    outcome = arguments.outputs.report.watch(world, [&] { return replay(world, run, *log, drawn.options.seed); });
  } catch (const Divergence& divergence) {
    world.flush_files();
    diverged(*log, divergence.what());
  } catch (const std::exception& error) {
    world.flush_files();
    if (run.failure_is_known(error.what())) print_error("the simulation fails as it did");
    throw;
  }
  fmt::print("  {}\n", outcome);
  arguments.outputs.write(world, machine_figures(world, drawn.options.seed), true, outcome);
  return 0;
}

}  // namespace

void add_replay_command(CLI::App& tool, std::function<int()>& action) {
  auto arguments = std::make_shared<ReplayArguments>();
  auto* command = add_command(
      tool, "replay",
      " (rnic serve --log), cycle for cycle and without the programs; what differs from the log is an error");
  command->add_option("log", arguments->log, "Event log (docs/event_log.md)")->type_name("LOG")->required();
  arguments->outputs.add_options(*command, arguments->options);
  arguments->options.threads = 1;
  command
      ->add_option("--threads", arguments->options.threads,
                   "Threads that simulate, one a NIC at most: results are the same with any number")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  command->callback([arguments, &action] { action = [arguments] { return run_replay_command(*arguments); }; });
}

}  // namespace rnic::testbench
