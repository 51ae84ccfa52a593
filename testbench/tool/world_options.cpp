#include "testbench/tool/world_options.hpp"

#include <fmt/format.h>

#include "testbench/scenario.hpp"

namespace rnic::testbench {

DrawnWorld WorldArguments::draw() const {
  if (pcie.chosen()) {
    const auto& root = options.host.root_complex;
    fmt::print("  both hosts: {}\n", drawn_from ? describe_link(pcie, root) : describe_pcie(pcie, root));
  }
  if (!drawn_from) return {options, {}, {}, {}};
  DrawnWorld drawn = draw_world(*drawn_from, options);
  for (const auto& line : drawn.text) fmt::print("  {}\n", line);
  return drawn;
}

void add_world_options(CLI::App& command, WorldArguments& world) {
  WorldOptions& options = world.options;
  command.add_option("--seed", options.seed, "Seed of everything random")->capture_default_str();
  auto* drawn = command.add_option(
      "--world", world.drawn_from,
      "Draw the machines and the wire from this seed: sizes, order and timing of PCI Express, clocks, rate, "
      "path MTU, first PSNs; instead of the options that say them");
  command.add_option("--link-gbps", options.wire.rate_gbps, "Rate of the wire, 10^9 bits per second")
      ->check(CLI::Range(0.1, 400.0))
      ->capture_default_str();
  command.add_option("--link-delay-ns", options.wire.delay_ns, "Delay of the wire")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  add_pcie_options(command, world.pcie, options.host.root_complex, drawn);
}

void add_faults_option(CLI::App& command, WorldOptions& options) {
  const auto load = [&options](const std::string& file) {
    try {
      options.wire.faults = {};
      load_scenario(file, options);
    } catch (const ScenarioError& error) {
      throw CLI::ValidationError("--faults", error.what());
    }
  };
  command.add_option_function<std::string>(
      "--faults", load, "Scenario file: what goes wrong on the wire and on PCI Express (docs/scenarios.md)");
}

}  // namespace rnic::testbench
