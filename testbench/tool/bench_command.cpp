#include <fmt/format.h>

#include <memory>

#include "testbench/tool/bench.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct Options {
  WorldOptions world;
  std::string json;
};

int run(const Options& options) {
  check_writable(options.json, "--json");
  World world(options.world);
  nlohmann::ordered_json json;
  fmt::print("{:<84}{:>14}\n", "figure", "value");
  for (const auto& figure : run_bench(world, options.world)) {
    fmt::print("{:<84}{:>14.3f} {}\n", figure.text, figure.value, figure.unit);
    json[figure.key] = figure.value;
  }
  write_json(options.json, json);
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<Options>();
  auto* command = tool.add_subcommand("bench", "Measures goodput, message rate and latency in simulated cycles");
  command->add_option("--json", options->json, "Write the figures to this file");
  add_world_options(*command, options->world);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace rnic::testbench
