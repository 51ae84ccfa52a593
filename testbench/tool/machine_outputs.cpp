#include "testbench/tool/machine_outputs.hpp"

#include "testbench/tool/report.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {

void MachineOutputs::add_options(CLI::App& command, WorldOptions& options) {
  add_file_options(command, options);
  command_name = command.get_name();
  add_json_option(command, json);
  add_timeline_options(command, options);
  report.add_option(command);
}

void MachineOutputs::check(const WorldOptions& options) const {
  check_files(options);
  check_writable(json, "--json");
  report.check();
}

void MachineOutputs::write(World& world, const nlohmann::ordered_json& figures, bool good, const std::string& outcome) {
  report.add_figure("machine", "simulated time", figures.at("simulated_ns"), "ns");
  report.set_outcome(good, outcome);
  write(world, figures);
}

void MachineOutputs::write(World& world, const nlohmann::ordered_json& figures) {
  world.close_timeline();
  write_json(json, result_json(command_name, report.good() ? Outcome::kPassed : Outcome::kFailed, figures));
  report.set("results", figures);
  report.write();
}

nlohmann::ordered_json machine_figures(World& world, std::uint64_t seed) {
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

}  // namespace rnic::testbench
