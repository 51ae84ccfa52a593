#include "testbench/tool/world_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "testbench/scenario.hpp"

namespace rnic::testbench {

DrawnWorld WorldArguments::draw() const {
  if (!drawn_from) return {options, {}, {}, {}};
  DrawnWorld drawn = draw_world(*drawn_from, options);
  for (const auto& line : drawn.text) fmt::print("  {}\n", line);
  return drawn;
}

void add_world_options(CLI::App& command, WorldArguments& world) {
  WorldOptions& options = world.options;
  command.add_option("--seed", options.seed, "Seed of everything random")->capture_default_str();
  command.add_option(
      "--world", world.drawn_from,
      "Draw the machines and the wire from this seed: sizes, order and timing of PCI Express, clocks, rate, "
      "path MTU, first PSNs; instead of the options that say them");
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  command
      .add_option("--threads", options.threads,
                  "Threads that simulate, one a NIC at most: results are the same with any number [default: cores]")
      ->envname("RNIC_THREADS")
      ->check(CLI::Range(1u, 64u));
  command.add_flag("!--no-clock-gating", options.clock_gating,
                   "Clock a NIC that is quiet, too: results are the same, and later");
  command.add_flag("--check-quiet", options.check_quiet, "Stop when a NIC that says it is quiet is not");
  command.add_option("--link-gbps", options.wire.rate_gbps, "Rate of the wire, 10^9 bits per second")
      ->check(CLI::Range(0.1, 400.0))
      ->capture_default_str();
  command.add_option("--link-delay-ns", options.wire.delay_ns, "Delay of the wire")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command.add_option("--pcie-read-ns", options.host.root_complex.read_latency_ns, "Round trip of a DMA read")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
}

void add_timeline_options(CLI::App& command, WorldOptions& options) {
  command.add_option("--timeline", options.timeline_path,
                     "Write the life of each work request to this file, as Chrome trace events (docs/timeline.md)");
  const auto parse = [&options](const std::string& text) {
    const std::size_t colon = text.find(':');
    TimelineWindow& window = options.timeline_window;
    const bool good = colon != std::string::npos && CLI::detail::lexical_cast(text.substr(0, colon), window.from_ns) &&
                      CLI::detail::lexical_cast(text.substr(colon + 1), window.to_ns) && window.from_ns <= window.to_ns;
    if (!good) throw CLI::ValidationError("--timeline-window", "is no FROM:TO in nanoseconds: " + text);
  };
  command
      .add_option_function<std::string>("--timeline-window", parse,
                                        "Of the timeline only what touches this part of the simulated time, ns")
      ->type_name("FROM:TO");
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
