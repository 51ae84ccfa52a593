#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "testbench/server/event_log_writer.hpp"
#include "testbench/server/machine_server.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/machine_arguments.hpp"
#include "testbench/tool/machine_outputs.hpp"
#include "testbench/tool/machine_programs.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/run_folder.hpp"
#include "testbench/tool/status_line.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

struct ServeArguments {
  MachineArguments machine;
  MachineOutputs outputs;
  std::string folder;
  std::string log;
  bool paused = false;
  bool quiet = false;
  bool late_entries = false;
  bool programs = true;
  std::string exec;  ///< ExecRun::plan; empty: rnic exec has not started it
  int ready = -1;
};

/// SIGINT and SIGTERM end the machine, SIGUSR1 stops its time and lets it go on. Threads that begin later do not get
/// them.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int one : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, one);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    descriptor_ = remote::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!descriptor_) throw std::system_error(errno, std::generic_category(), "signalfd");
  }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The next that has come; 0: none.
  [[nodiscard]] int take() const {
    signalfd_siginfo info{};
    return read(descriptor_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  remote::Descriptor descriptor_;
};

void tell_ready(int descriptor) {
  if (descriptor < 0) return;
  static_cast<void>(write(descriptor, "\n", 1) == 0);
  close(descriptor);
}

/// The log of a run that begins, if one is wanted.
std::unique_ptr<EventLogWriter> begin_log(const ServeArguments& arguments) {
  if (arguments.log.empty()) return nullptr;
  const EventLogHeader header{.arguments = arguments.machine.given(),
                              .files = arguments.machine.world.files.texts(),
                              .version = RNIC_VERSION,
                              .build = build_of_tool(),
                              .slice_ps = MachineServer::kSlicePs};
  try {
    return std::make_unique<EventLogWriter>(arguments.log, header);
  } catch (const EventLogError& error) {
    throw UsageError(fmt::format("--log: {}", error.what()));
  }
}

/// What a machine with guests has not.
void check_guests(const ServeArguments& arguments, std::size_t hosts) {
  const auto& guests = arguments.machine.guests;
  if (guests.empty()) return;
  if (*guests.rbegin() >= hosts) throw UsageError(fmt::format("--guest: there is no host {}", *guests.rbegin()));
  if (!arguments.log.empty()) throw UsageError("--log: what a guest does is in no event log");
  if (arguments.machine.world.drawn_from)
    throw UsageError("--world: a guest's processor has a memory order of its own");
}

/// The machine from its first process to the signal that ends it.
void serve(MachineServer& server, const Signals& signals, const ServeArguments& arguments) {
  static_cast<void>(server.poller().add(signals.descriptor(), [&] {
    for (int signal = signals.take(); signal != 0; signal = signals.take()) {
      if (signal == SIGUSR1) {
        server.pause();
      } else {
        server.stop();
      }
    }
  }));
  server.bring_up();
  server.listen();
  for (const auto& host : server.hosts()) fmt::print("  {}: {}\n", host->host().basename(), host->socket());
  for (const auto& guest : server.guests())
    fmt::print("  {}: {}, for a guest\n", guest->host().basename(), guest->socket());
  for (std::size_t i = 0; i < server.sockets().size(); ++i)
    fmt::print("  socket{}: {}\n", i, server.sockets()[i]->options().describe());
  std::fflush(stdout);
  std::optional<StatusLine> status;
  if (!arguments.quiet) status.emplace(server);
  tell_ready(arguments.ready);
  try {
    server.serve();
    server.finish();
  } catch (const std::exception& error) {
    server.give_up(error.what());
    throw;
  }
}

int run_serve_command(ServeArguments& arguments) {
  arguments.outputs.check(arguments.machine.world.options);
  check_guests(arguments, arguments.machine.world.options.hosts);
  make_run_folder(arguments.folder);
  raise_descriptor_limit();
  const Signals signals;
  MemoryHelpers helpers;
  const auto log = begin_log(arguments);
  DrawnWorld drawn = arguments.machine.world.draw();
  arguments.outputs.report.observe(drawn.options);
  MachinePrograms programs;
  if (arguments.programs) programs.observe(drawn.options);
  if (!arguments.exec.empty()) programs.take(nlohmann::ordered_json::parse(arguments.exec));
  World world(drawn.options);
  MachineServerOptions options = arguments.machine.server_options(world.hosts());
  options.folder = arguments.folder;
  options.paused = arguments.paused;
  options.late_entries = arguments.late_entries;
  options.helpers = &helpers;
  options.log = log.get();
  MachineServer* running = nullptr;
  options.figures = [&] { return programs.figures(*running); };
  options.run = [&](nlohmann::ordered_json run) { programs.take(std::move(run)); };
  MachineServer server(world, std::move(options), print_error);
  running = &server;
  if (arguments.programs)
    arguments.outputs.report.only([&server](unsigned host, std::uint8_t qp) { return server.had(host, qp); });
  const auto fill = [&] {
    if (arguments.programs || !arguments.exec.empty()) programs.fill(arguments.outputs.report, server);
  };
  arguments.outputs.report.watch(world, [&] {
    try {
      serve(server, signals, arguments);
      world.judge();
    } catch (const std::exception&) {
      fill();
      throw;
    }
  });
  const auto figures = machine_figures(world, drawn.options.seed);
  if (log != nullptr) {
    log->end(figures.dump());
    if (!log->failure().empty()) print_error(log->failure());
  }
  world.close_timeline();
  fill();
  if (programs.ended()) {
    arguments.outputs.write(world, figures);
  } else {
    arguments.outputs.write(world, figures, true, "the machine was ended by a signal");
  }
  return 0;
}

}  // namespace

void add_serve_command(CLI::App& tool, std::function<int()>& action) {
  auto arguments = std::make_shared<ServeArguments>();
  auto* command = add_command(tool, "serve", " (rnic exec), until a signal ends it");
  add_machine_options(*command, arguments->machine);
  arguments->folder = default_run_folder();
  command->add_option("--dir", arguments->folder, "Folder of the hosts' sockets: host0, host1, ...")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->add_option("--guest", arguments->machine.guests,
                      "Number of a host whose processor and memory are a guest's (rnic linux); may be given again");
  command->add_flag(
      "--late-entries", arguments->late_entries,
      "A guest sees the phase of an entry before the rest of it, until it reads a register (docs/guest.md)");
  command->add_flag("--pause", arguments->paused, "Time stands still until SIGUSR1 comes, which stops it again, too");
  command->add_flag_callback(
      "--no-programs", [arguments] { arguments->programs = false; },
      "Do not follow the requests of each queue pair: faster, but rnic exec has no figures and no diagnosis");
  // For rnic exec.
  command->add_option("--exec", arguments->exec)->group("");
  command->add_flag("--quiet", arguments->quiet, "No status line on a terminal");
  command->add_option("--ready-fd", arguments->ready, "Descriptor to write a line to when processes can come");
  command
      ->add_option("--log", arguments->log,
                   "Write what comes from outside to this file, for rnic replay (docs/event_log.md)")
      ->type_name("FILE");
  arguments->outputs.add_options(*command, arguments->machine.world.options);
  command->callback([arguments, &action] { action = [arguments] { return run_serve_command(*arguments); }; });
}

}  // namespace rnic::testbench
