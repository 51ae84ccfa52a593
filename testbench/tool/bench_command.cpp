#include <fmt/format.h>

#include <memory>

#include "testbench/tool/bench.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct BenchArguments {
  WorldArguments world;
  std::string json;
  std::vector<std::string> figures;
  bool list = false;
};

int run_bench_command(const BenchArguments& options) {
  check_writable(options.json, "--json");
  check_writable(options.world.options.trace_path, "--trace");
  check_writable(options.world.options.timeline_path, "--timeline");
  if (!options.world.options.trace_path.empty() && options.figures.size() != 1) {
    throw UsageError("--trace records one measurement: name it with --figure");
  }
  if (!options.world.options.timeline_path.empty() && options.figures.size() != 1) {
    throw UsageError("--timeline shows one measurement: name it with --figure");
  }
  const DrawnWorld drawn = options.world.draw();
  World world(drawn.options);
  if (options.list) {
    for (const auto& figure : run_bench(world, drawn.options, options.figures, true)) fmt::print("{}\n", figure.key);
    return 0;
  }
  nlohmann::ordered_json json;
  fmt::print("{:<84}{:>14} {:<11}{:>9}\n", "figure", "value", "", "cycles");
  for (const auto& figure : run_bench(world, drawn.options, options.figures)) {
    const std::string cycles =
        figure.cycles > 0 ? fmt::format("{:<11}{:>9.2f}", figure.unit, figure.cycles) : figure.unit;
    fmt::print("{:<84}{:>14.3f} {}\n", figure.text, figure.value, cycles);
    json[figure.key] = figure.value;
  }
  world.close_timeline();
  fmt::print("cycles: of the NIC's clock, {} ps; of a rate, those for each message\n",
             drawn.options.host.nic.clock_period);
  write_json(options.json, json);
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
  command->add_option("--trace", options->world.options.trace_path,
                      "Write the waves of both NICs to this FST file; with one --figure (scripts/trace_usage.py says "
                      "who waits for whom)");
  add_timeline_options(*command, options->world.options);
  add_world_options(*command, options->world);
  command->callback([options, &action] { action = [options] { return run_bench_command(*options); }; });
}

}  // namespace rnic::testbench
