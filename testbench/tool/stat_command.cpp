#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "testbench/tool/commands.hpp"
#include "testbench/tool/machine_question.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/run_folder.hpp"

namespace rnic::testbench {
namespace {

using Json = nlohmann::ordered_json;

struct StatArguments {
  std::string folder = default_run_folder();
  bool json = false;
  double watch = 0;  ///< Seconds; 0: once
};

void print_process(const Json& process) {
  constexpr double kMiB = 1 << 20;
  fmt::print("  {:>8} {:<16} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>10.1f} {:>10.1f} {:>10} {:>12}\n",
             process.at("process").get<std::int64_t>(), process.at("name").get<std::string>(),
             process.at("clients").get<int>(), process.at("queue_pairs").get<int>(),
             process.at("completion_queues").get<int>(), process.at("shared_receive_queues").get<int>(),
             process.at("memory_regions").get<int>(), process.at("memory_windows").get<int>(),
             process.at("pinned_bytes").get<double>() / kMiB, process.at("ring_bytes").get<double>() / kMiB,
             process.at("calls").get<std::uint64_t>(), process.at("doorbells").get<std::uint64_t>());
}

void print_guest(const Json& guest) {
  if (!guest.at("running").get<bool>()) return fmt::print("  no guest\n");
  constexpr double kMiB = 1 << 20;
  fmt::print("  a guest with {:.0f} MiB: {} reads and {} writes of registers, {} interrupts\n",
             guest.at("memory_bytes").get<double>() / kMiB, guest.at("reads").get<std::uint64_t>(),
             guest.at("writes").get<std::uint64_t>(), guest.at("interrupts").get<std::uint64_t>());
  for (const auto& [rule, times] : guest.at("ownership").at("broken").items())
    fmt::print("  its driver has broken {} {} times\n", rule, times.get<std::uint64_t>());
}

void print_processes(const Json& answer) {
  for (const auto& host : answer.at("hosts")) {
    fmt::print("{}\n", host.at("name").get<std::string>());
    if (host.contains("guest")) {
      print_guest(host.at("guest"));
      continue;
    }
    if (host.at("processes").empty()) {
      fmt::print("  no process\n");
      continue;
    }
    fmt::print("  {:>8} {:<16} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>10} {:>10} {:>10} {:>12}\n", "process", "name",
               "opens", "QPs", "CQs", "SRQs", "MRs", "MWs", "pinned MiB", "rings MiB", "calls", "doorbells");
    for (const auto& process : host.at("processes")) print_process(process);
  }
}

void print_counts(const char* indent, const Json& counts, const Json* before) {
  for (const auto& [name, count] : counts.items()) {
    const auto now = count.get<std::uint64_t>();
    if (before == nullptr) {
      fmt::print("{}{:<24} {:>14}\n", indent, name, now);
    } else {
      fmt::print("{}{:<24} {:>14}  +{}\n", indent, name, now, now - before->value(name, std::uint64_t{0}));
    }
  }
}

/// `before`: the answer of the look before, for what has come since; may be null.
void print_counters(const Json& answer, const Json* before) {
  fmt::print("{:.6f} s simulated{}\n", answer.at("simulated_ns").get<double>() * 1e-9,
             answer.at("paused").get<bool>() ? ", paused" : "");
  const auto& hosts = answer.at("hosts");
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    fmt::print("{}\n", hosts[i].at("name").get<std::string>());
    print_counts("  ", hosts[i].at("counters"),
                 before == nullptr ? nullptr : &before->at("hosts").at(i).at("counters"));
    if (hosts[i].contains("guest")) print_guest(hosts[i].at("guest"));
    for (const auto& process : hosts[i].at("processes")) {
      fmt::print("  process {} {}\n", process.at("process").get<std::int64_t>(), process.at("name").get<std::string>());
      for (const auto& pair : process.at("pairs")) {
        fmt::print("    queue pair {:#x} {} {}\n", pair.at("qpn").get<std::uint32_t>(),
                   pair.at("type").get<std::string>(), pair.at("state").get<std::string>());
        print_counts("      ", pair.at("counters"), nullptr);
      }
    }
  }
}

/// What has passed between the machine and the world outside.
void print_sockets(const Json& answer, const Json* before) {
  if (!answer.contains("sockets")) return;
  const auto& sockets = answer.at("sockets");
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    fmt::print("socket{}: {}\n", i, sockets[i].at("socket").get<std::string>());
    print_counts("  ", sockets[i].at("counters"),
                 before == nullptr ? nullptr : &before->at("sockets").at(i).at("counters"));
  }
}

int run_ps(const StatArguments& arguments) {
  const Json answer = ask_machine(arguments.folder, "ps");
  if (arguments.json) {
    fmt::print("{}\n", result_json("ps", Outcome::kPassed, answer).dump(2));
  } else {
    print_processes(answer);
  }
  return 0;
}

int run_stat(const StatArguments& arguments) {
  Json before;
  for (;;) {
    Json answer = ask_machine(arguments.folder, "stat");
    if (arguments.json) {
      fmt::print("{}\n", result_json("stat", Outcome::kPassed, answer).dump(arguments.watch > 0 ? -1 : 2));
    } else {
      if (arguments.watch > 0 && isatty(STDOUT_FILENO) != 0) fmt::print("\033[H\033[2J");
      print_counters(answer, before.is_null() ? nullptr : &before);
      print_sockets(answer, before.is_null() ? nullptr : &before);
    }
    std::fflush(stdout);
    if (arguments.watch <= 0) return 0;
    before = std::move(answer);
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.watch));
  }
}

void add_folder_option(CLI::App& command, StatArguments& arguments) {
  command.add_option("--dir", arguments.folder, "Folder of the machine's sockets")
      ->type_name("FOLDER")
      ->capture_default_str();
  command.add_flag("--json", arguments.json, "JSON on standard output (docs/results.md)");
}

}  // namespace

void add_ps_command(CLI::App& tool, std::function<int()>& action) {
  auto arguments = std::make_shared<StatArguments>();
  auto* command = add_command(tool, "ps", " (rnic serve), with what they have");
  add_folder_option(*command, *arguments);
  command->callback([arguments, &action] { action = [arguments] { return run_ps(*arguments); }; });
}

void add_stat_command(CLI::App& tool, std::function<int()>& action) {
  auto arguments = std::make_shared<StatArguments>();
  auto* command = add_command(tool, "stat", " (rnic serve): those of each NIC, and of each queue pair of each process");
  add_folder_option(*command, *arguments);
  command
      ->add_option("--watch", arguments->watch,
                   "Again after so many seconds [1], until the machine ends, with what has come since")
      ->expected(0, 1)
      ->default_str("1")
      ->check(CLI::Range(0.1, 3600.0));
  command->callback([arguments, &action] { action = [arguments] { return run_stat(*arguments); }; });
}

}  // namespace rnic::testbench
