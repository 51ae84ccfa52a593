#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "testbench/server/machine_file.hpp"
#include "testbench/server/machine_server.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/report_file.hpp"
#include "testbench/tool/run_folder.hpp"
#include "testbench/tool/status_line.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct ServeArguments {
  WorldArguments world;
  ReportFile report;
  std::string folder;
  std::string json;
  MachineDescription machine;  ///< Of the machine file: what is not in `world`
  bool paused = false;
  bool quiet = false;
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

/// Every process needs some descriptors, and every ring that one maps.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void tell_ready(int descriptor) {
  if (descriptor < 0) return;
  static_cast<void>(write(descriptor, "\n", 1) == 0);
  close(descriptor);
}

nlohmann::ordered_json serve_json(World& world, std::uint64_t seed) {
  nlohmann::ordered_json json{{"seed", seed}, {"simulated_ns", world.now_ns()}};
  for (std::size_t i = 0; i < world.hosts(); ++i) {
    const auto& root = world.host(i).root_complex().statistics();
    const auto plug = world.plug(i);
    json["hosts"].push_back({{"frames_sent", plug.wire.statistics(plug.end).frames},
                             {"dma_reads", root.dma_reads},
                             {"dma_read_bytes", root.dma_read_bytes},
                             {"dma_writes", root.dma_writes},
                             {"dma_write_bytes", root.dma_write_bytes},
                             {"interrupts", root.interrupts},
                             {"clocked_cycles", world.host(i).nic().clocked()}});
  }
  if (const auto faults = faults_json(world); !faults.empty()) json["faults"] = faults;
  return json;
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
  server.begin();
  for (const auto& host : server.hosts()) fmt::print("  {}: {}\n", host->host().basename(), host->socket());
  for (std::size_t i = 0; i < server.sockets().size(); ++i)
    fmt::print("  socket{}: {}\n", i, server.sockets()[i]->options().describe());
  std::fflush(stdout);
  std::optional<StatusLine> status;
  if (!arguments.quiet) status.emplace(server);
  tell_ready(arguments.ready);
  try {
    server.serve();
    server.finish();
  } catch (...) {
    server.give_up();
    throw;
  }
}

int run_serve_command(ServeArguments& arguments) {
  check_files(arguments.world.options);
  check_writable(arguments.json, "--json");
  arguments.report.check();
  make_run_folder(arguments.folder);
  raise_descriptor_limit();
  const Signals signals;
  DrawnWorld drawn = arguments.world.draw();
  arguments.report.observe(drawn.options);
  World world(drawn.options);
  MachineServerOptions options{.sockets = arguments.machine.sockets,
                               .folder = arguments.folder,
                               .gids = {},
                               .quota = arguments.machine.quota,
                               .paused = arguments.paused};
  for (std::size_t i = 0; i < world.hosts(); ++i) options.gids.push_back(arguments.machine.gids_of(i));
  MachineServer server(world, std::move(options),
                       [](const std::string& line) { fmt::print(stderr, "rnic: {}\n", line); });
  arguments.report.watch(world, [&] {
    serve(server, signals, arguments);
    world.judge();
  });
  world.close_timeline();
  const auto json = serve_json(world, drawn.options.seed);
  write_json(arguments.json, json);
  arguments.report.add_figure("machine", "simulated time", json.at("simulated_ns"), "ns");
  arguments.report.set_outcome(true, "the machine was ended by a signal");
  arguments.report.set("results", json);
  arguments.report.write();
  return 0;
}

}  // namespace

void add_serve_command(CLI::App& tool, std::function<int()>& action) {
  auto arguments = std::make_shared<ServeArguments>();
  auto* command = tool.add_subcommand(
      "serve",
      "A machine as a process: hosts with a NIC each, for programs that come to them (rnic exec), until a signal");
  auto& options = arguments->world.options;
  // First, so that options which are given stand above the file.
  command
      ->add_option_function<std::string>(
          "machine",
          [arguments = arguments.get()](const std::string& file) {
            MachineDescription machine{.world = arguments->world.options, .gids = {}, .sockets = {}, .quota = {}};
            try {
              load_machine(file, machine);
            } catch (const MachineFileError& error) {
              throw CLI::ValidationError("machine file", error.what());
            }
            arguments->world.options = machine.world;
            arguments->machine = std::move(machine);
          },
          "Machine file (docs/machine_file.md)")
      ->type_name("MACHINE.toml");
  command->add_option("--hosts", options.hosts, "Hosts; more than two hang on a switch")
      ->check(CLI::Range(std::size_t{2}, WorldOptions::kMostHosts))
      ->capture_default_str();
  arguments->folder = default_run_folder();
  command->add_option("--dir", arguments->folder, "Folder of the hosts' sockets: host0, host1, ...")
      ->capture_default_str();
  command->add_flag("--pause", arguments->paused, "Time stands still until SIGUSR1 comes, which stops it again, too");
  command->add_flag("--quiet", arguments->quiet, "No status line on a terminal");
  command->add_option("--ready-fd", arguments->ready, "Descriptor to write a line to when processes can come");
  add_file_options(*command, options);
  command->add_option("--json", arguments->json, "Write the figures to this file");
  add_timeline_options(*command, options);
  arguments->report.add_option(*command);
  add_world_options(*command, arguments->world);
  // The programs need the processors, too, and a thread that waits for one costs both.
  options.threads = 1;
  command->get_option("--threads")
      ->description(
          "Threads that simulate, one a NIC at most; more than 1 for a machine with processors to spare [default: 1]");
  add_faults_option(*command, options);
  command->callback([arguments, &action] { action = [arguments] { return run_serve_command(*arguments); }; });
}

}  // namespace rnic::testbench
