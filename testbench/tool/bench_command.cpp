#include <fmt/format.h>

#include <memory>

#include "testbench/tool/bench.hpp"
#include "testbench/tool/bench_sweep.hpp"
#include "testbench/tool/bench_sweep_report.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/progress.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/report_file.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct BenchArguments {
  WorldArguments world;
  ReportFile report;
  std::string json;
  std::vector<std::string> figures;
  bool list = false;
  SweepOptions sweep;
};

int run_sweep_command(BenchArguments& options) {
  check_writable(options.json, "--json");
  options.report.check();
  const DrawnWorld drawn = options.world.draw();
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
  write_json(options.json, json);
  options.report.set("sweep", json);
  options.report.set_outcome(true, fmt::format("{} measurements", rows.size()));
  options.report.write();
  return 0;
}

int run_bench_command(BenchArguments& options) {
  check_writable(options.json, "--json");
  options.report.check();
  check_files(options.world.options);
  const auto& files = options.world.options;
  if (!(files.trace_path.empty() && files.capture_path.empty()) && options.figures.size() != 1) {
    throw UsageError("--trace and --pcap record one measurement: name it with --figure");
  }
  if (!options.world.options.timeline_path.empty() && options.figures.size() != 1) {
    throw UsageError("--timeline shows one measurement: name it with --figure");
  }
  DrawnWorld drawn = options.world.draw();
  // Of several measurements the report has the figures alone: nobody looks, and their speed is their own.
  if (options.figures.size() == 1) options.report.observe(drawn.options);
  World world(drawn.options);
  if (options.list) {
    for (const auto& figure : run_bench(world, drawn.options, options.figures, true)) fmt::print("{}\n", figure.key);
    return 0;
  }
  nlohmann::ordered_json json, wall_clock;
  fmt::print("{:<84}{:>14} {:<11}{:>9}\n", "figure", "value", "", "cycles");
  const auto figures = options.report.watch(world, [&] { return run_bench(world, drawn.options, options.figures); });
  for (const auto& figure : figures) {
    const std::string cycles =
        figure.cycles > 0 ? fmt::format("{:<11}{:>9.2f}", figure.unit, figure.cycles) : figure.unit;
    fmt::print("{:<84}{:>14.3f} {}\n", figure.text, figure.value, cycles);
    json[figure.key] = figure.value;
    if (figure.wall_clock) {
      wall_clock[figure.key] = figure.value;
    } else {
      options.report.add_figure("Benchmark", figure.text, figure.value, figure.unit);
      if (figure.cycles > 0)
        options.report.add_figure("In cycles of the NIC's clock", figure.text, figure.cycles, "cycles");
    }
  }
  world.close_timeline();
  fmt::print("cycles: of the NIC's clock, {} ps; of a rate, those for each message\n",
             drawn.options.host.nic.clock_period);
  write_json(options.json, json);
  options.report.set_outcome(true, fmt::format("{} figure{}", figures.size(), figures.size() == 1 ? "" : "s"));
  if (!wall_clock.is_null()) options.report.set("wall_clock", wall_clock);
  options.report.write();
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<BenchArguments>();
  auto* command = tool.add_subcommand("bench", "Measures goodput, message rate and latency in simulated cycles");
  command->add_option("--json", options->json, "Write the figures to this file");
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
  command->add_option("--at", options->sweep.at, "Values of the sweep, instead of its own; separated by commas")
      ->delimiter(',')
      ->needs(sweep);
  command->add_option("--message", options->sweep.message, "Bytes of a message of the sweep")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->needs(sweep);
  command->add_option("--qps", options->sweep.qps, "Queue pairs of the sweep")
      ->check(CLI::Range(1u, 128u))
      ->needs(sweep);
  command->add_option("--mtu", options->sweep.mtu, "Path MTU of the sweep, bytes")
      ->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}))
      ->needs(sweep);
  command->callback([options, &action] {
    action = [options] {
      return options->sweep.over.empty() ? run_bench_command(*options) : run_sweep_command(*options);
    };
  });
}

}  // namespace rnic::testbench
