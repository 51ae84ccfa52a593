#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <cctype>
#include <functional>
#include <memory>

#include "testbench/interrupt.hpp"
#include "testbench/tool/bench.hpp"
#include "testbench/tool/bench_sweep.hpp"
#include "testbench/tool/bench_sweep_report.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/progress.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/report_file.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct BenchArguments {
  WorldArguments world;
  ReportFile report;
  std::string json;
  std::vector<std::string> figures;
  bool list = false;
  bool sized_at = false;  ///< A value of --at has a unit
  SweepOptions sweep;
};

/// Writes what was measured, `count` of `what`; `show` puts it into the report. The exit code.
int end_bench(BenchArguments& options, const WorldOptions& world, const nlohmann::ordered_json& results,
              const nlohmann::ordered_json& wall_clock, std::size_t count, const std::string& what,
              const std::function<void()>& show) {
  const bool by_user = interrupted();
  if (by_user) fmt::print("{}: no more is measured\n", toned("interrupted", Tone::kBad));
  write_json(options.json,
             result_json("bench", by_user ? Outcome::kInterrupted : Outcome::kPassed, results, wall_clock));
  show();
  options.report.set_outcome(!by_user, counted(count, what) + (by_user ? ", interrupted by the user" : ""));
  options.report.write();
  print_written(world, {options.report.path(), options.json});
  return by_user ? kInterruptedCode : 0;
}

int run_sweep_command(BenchArguments& options) {
  check_writable(options.json, "--json");
  options.report.check();
  DrawnWorld drawn = options.world.draw();
  if (options.sized_at && options.sweep.over != "message" && options.sweep.over != "mtu")
    throw UsageError("--at: k, M and G are for numbers of bytes (--sweep message, --sweep mtu)");
  drawn.options.interruptible = true;
  catch_interrupts();
  World world(drawn.options);
  std::vector<SweepRow> rows;
  {
    Progress progress("sweep", 100);
    rows = options.report.watch(world, [&] {
      return run_sweep(world, drawn.options, options.sweep,
                       [&](std::size_t done, std::size_t of) { progress.update(done * 100 / of); });
    });
  }
  print_sweep(options.sweep, rows);
  const auto pcie = describe_pcie(options.world.pcie, drawn.options.host.root_complex);
  const auto json = sweep_json(options.sweep, rows, drawn.options, pcie);
  return end_bench(options, drawn.options, json, nlohmann::ordered_json::object(), rows.size(), "measurement",
                   [&] { options.report.set("sweep", json); });
}

int run_bench_command(BenchArguments& options) {
  check_writable(options.json, "--json");
  options.report.check();
  const auto& files = options.world.options;
  if (!(files.trace_path.empty() && files.capture_path.empty()) && options.figures.size() != 1) {
    throw UsageError("--trace and --pcap record one measurement: name it with --figure");
  }
  if (!options.world.options.timeline_path.empty() && options.figures.size() != 1) {
    throw UsageError("--timeline shows one measurement: name it with --figure");
  }
  check_files(options.world.options);
  DrawnWorld drawn = options.world.draw();
  // Of several measurements the report has the figures alone: nobody looks, and their speed is their own.
  if (options.figures.size() == 1) options.report.observe(drawn.options);
  drawn.options.interruptible = true;
  catch_interrupts();
  World world(drawn.options);
  if (options.list) {
    for (const auto& figure : run_bench(world, drawn.options, options.figures, true)) fmt::print("{}\n", figure.key);
    return 0;
  }
  auto json = nlohmann::ordered_json::object(), wall_clock = nlohmann::ordered_json::object();
  fmt::print("{:<84}{:>14} {:<11}{:>9}\n", "figure", "value", "", "cycles");
  std::vector<BenchFigure> figures;
  {
    Progress progress("bench", 1'000);
    figures = options.report.watch(world, [&] {
      return run_bench(world, drawn.options, options.figures, false,
                       [&](std::size_t done, std::size_t of) { progress.update(done * 1'000 / of); });
    });
  }
  for (const auto& figure : figures) {
    const std::string cycles =
        figure.cycles > 0 ? fmt::format("{:<11}{:>9.2f}", figure.unit, figure.cycles) : figure.unit;
    fmt::print("{:<84}{:>14.3f} {}\n", figure.text, figure.value, cycles);
    if (figure.wall_clock) {
      wall_clock[figure.key] = figure.value;
    } else {
      json[figure.key] = figure.value;
      options.report.add_figure("Benchmark", figure.text, figure.value, figure.unit);
      if (figure.cycles > 0)
        options.report.add_figure("In cycles of the NIC's clock", figure.text, figure.cycles, "cycles");
    }
  }
  world.close_timeline();
  fmt::print("cycles: of the NIC's clock, {} ps; of a rate, those for each message\n",
             drawn.options.host.nic.clock_period);
  return end_bench(options, drawn.options, json, wall_clock, figures.size(), "figure", [&] {
    if (!wall_clock.empty()) options.report.set("wall_clock", wall_clock);
  });
}

}  // namespace

void add_bench_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<BenchArguments>();
  auto* command = add_command(tool, "bench");
  add_json_option(*command, options->json);
  command->add_option("--figure", options->figures,
                      "Measure this figure alone, by its name in the JSON file; may be repeated");
  command->add_flag("--list", options->list, "Print the names of the figures and measure nothing");
  add_timeline_options(*command, options->world.options);
  options->report.add_option(*command);
  add_file_options(*command, options->world.options,
                   "both NICs, with one --figure (scripts/trace_usage.py says who waits for whom),");
  add_world_options(*command, options->world);
  auto* sweep = command
                    ->add_option("--sweep", options->sweep.over,
                                 "Measure Writes and Reads, one way and both, over this, each beside what wire and PCI "
                                 "Express allow (docs/limits.md); with --json the curves")
                    ->check(CLI::IsMember(sweep_names()));
  for (const auto* other : {"--figure", "--list", "--trace", "--pcap", "--world"})
    sweep->excludes(command->get_option(other));
  // Without a unit any number is right, with one only a number of bytes (run_sweep_command).
  const auto sized = [options](std::string& value) {
    if (value.empty() || std::isalpha(static_cast<unsigned char>(value.back())) == 0) return std::string();
    options->sized_at = true;
    return byte_size()(value);
  };
  command->add_option("--at", options->sweep.at, "Values of the sweep, instead of its own; separated by commas")
      ->delimiter(',')
      ->transform(CLI::Validator(sized, ""))
      ->needs(sweep);
  command->add_option("--message", options->sweep.message, "Bytes of a message of the sweep; 64k, 1M: KiB, MiB")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->transform(byte_size())
      ->needs(sweep);
  command->add_option("--qps", options->sweep.qps, "Queue pairs of the sweep")
      ->check(CLI::Range(1u, 128u))
      ->needs(sweep);
  command->add_option("--mtu", options->sweep.mtu, "Path MTU of the sweep, bytes")
      ->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}))
      ->transform(byte_size())
      ->needs(sweep);
  command->callback([options, &action] {
    action = [options] {
      return options->sweep.over.empty() ? run_bench_command(*options) : run_sweep_command(*options);
    };
  });
}

}  // namespace rnic::testbench
