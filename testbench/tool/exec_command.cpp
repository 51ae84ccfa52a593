#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <memory>
#include <system_error>
#include <utility>

#include "testbench/tool/commands.hpp"
#include "testbench/tool/exec_run.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/machine_process.hpp"
#include "testbench/tool/program_pair.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/run_folder.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

struct ExecArguments {
  unsigned host = 0;
  std::string folder;
  std::string out;
  std::string clock = "wall";
  bool pair = false;
  std::vector<std::string> serve;     ///< Arguments for the machine's own command
  std::vector<std::string> programs;  ///< As they stand behind "--"
};

/// The machine that was named; else the user's own that runs, if nothing is asked of it; else a new one.
MachineProcess reach_machine(const ExecArguments& arguments, const ExecRun& planned) {
  if (!arguments.folder.empty()) {
    if (!arguments.serve.empty())
      throw UsageError(
          fmt::format("'{}' is for a machine that begins, and --dir names one that runs", arguments.serve.front()));
    return MachineProcess::at(arguments.folder);
  }
  if (arguments.serve.empty() && MachineProcess::listens(default_run_folder()))
    return MachineProcess::at(default_run_folder());
  return MachineProcess::start(arguments.serve, planned.plan());
}

MachineProcess find_machine(const ExecArguments& arguments, const ExecRun& planned) {
  MachineProcess machine = reach_machine(arguments, planned);
  if (arguments.clock == "simulated") machine.give_simulated_clock();
  return machine;
}

/// Behind the programs: says what they did, and ends the machine if it is our own.
int finish(const ExecRun& run, MachineProcess& machine, std::FILE* out) {
  run.print(machine, out);
  if (machine.own()) run.tell(machine);
  return machine.end();
}

pid_t g_program = -1;

/// The program hears what is meant for it.
void pass_on(int signal) {
  if (g_program > 0) kill(g_program, signal);
}

int run_program(const ExecArguments& arguments) {
  RunProgram run{.role = "", .host = arguments.host, .command = arguments.programs, .code = 127};
  MachineProcess machine = find_machine(arguments, ExecRun({run}));
  ChildOptions options;
  options.command = arguments.programs;
  options.environment = machine.environment(arguments.host);
  try {
    ChildProcess program(options);
    g_program = program.process();
    // The terminal tells the program by itself.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
    std::signal(SIGTERM, pass_on);
    run.process = g_program;
    run.code = program.wait();
    g_program = -1;
  } catch (const std::system_error& error) {
    print_error(error.what());
  }
  const int code = run.code;
  // Standard output is the program's.
  const int machine_code = finish(ExecRun({std::move(run)}), machine, stderr);
  return code != 0 ? code : machine_code;
}

/// The two halves of "SERVER ARGS -- CLIENT ARGS".
std::pair<std::vector<std::string>, std::vector<std::string>> halves(const std::vector<std::string>& programs) {
  const auto between = std::find(programs.begin(), programs.end(), "--");
  if (between == programs.end() || between == programs.begin() || between + 1 == programs.end())
    throw UsageError("--pair is followed by two programs: -- SERVER ARGS -- CLIENT ARGS");
  return {{programs.begin(), between}, {between + 1, programs.end()}};
}

int run_pair(ExecArguments& arguments) {
  auto [server, client] = halves(arguments.programs);
  ProgramPair pair{.server = std::move(server), .client = std::move(client), .folder = arguments.out};
  const bool own = arguments.folder.empty();
  if (own) pair.make_folder(arguments.serve);
  MachineProcess machine = find_machine(arguments, ExecRun(pair.programs()));
  const ExecRun run(pair.run(machine));
  const int code = run.code(), machine_code = finish(run, machine, stdout);
  if (own) fmt::print("rnic: capture, timeline and report are in {}\n", pair.folder);
  return code != 0 ? code : machine_code;
}

int run_exec_command(ExecArguments& arguments) {
  if (arguments.programs.empty()) throw UsageError("which program? rnic exec [options] -- PROGRAM ARGS");
  return arguments.pair ? run_pair(arguments) : run_program(arguments);
}

}  // namespace

void add_exec_command(CLI::App& tool, std::vector<std::string> programs, std::function<int()>& action) {
  auto arguments = std::make_shared<ExecArguments>();
  arguments->programs = std::move(programs);
  auto* command = add_command(tool, "exec",
                              ": rnic exec [options] -- PROGRAM ARGS; or two that belong together: rnic exec --pair -- "
                              "SERVER ARGS -- CLIENT ARGS. Without --dir it takes the machine that runs, or starts "
                              "one, for which all options of rnic serve may be given");
  command->add_option("--host", arguments->host, "Host that the program runs on")->capture_default_str();
  command->add_option("--dir", arguments->folder, "Folder of the sockets of a machine that runs");
  command
      ->add_option(
          "--clock", arguments->clock,
          "Time that the programs see: the system's, or simulated time, so that what they measure is the NIC's")
      ->check(CLI::IsMember({"wall", "simulated"}))
      ->capture_default_str();
  auto* pair = command->add_flag("--pair", arguments->pair,
                                 "The first program on host 0; when it listens, the second one on host 1");
  command
      ->add_option("--out", arguments->out,
                   "Folder for what a pair leaves: capture, timeline, report, figures [default: a new rnic_pair_N]")
      ->needs(pair);
  command->allow_extras();
  command->callback([arguments, command, &action] {
    arguments->serve = command->remaining();
    action = [arguments] { return run_exec_command(*arguments); };
  });
}

}  // namespace rnic::testbench
