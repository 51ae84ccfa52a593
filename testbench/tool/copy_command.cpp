#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "testbench/tool/commands.hpp"
#include "testbench/tool/copy.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct CopyArguments {
  CopyOptions copy;
  WorldArguments world;
  std::string json;
};

int run_copy_command(CopyArguments options) {
  if (!std::filesystem::is_regular_file(options.copy.file) || !std::ifstream(options.copy.file)) {
    throw UsageError(fmt::format("cannot read file '{}'", options.copy.file.string()));
  }
  check_files(options.world.options);
  check_writable(options.json, "--json");
  const DrawnWorld drawn = options.world.draw();
  options.copy.mtu = drawn.mtu.value_or(options.copy.mtu);
  options.copy.ack_timeout = static_cast<std::uint8_t>(options.copy.ack_timeout + drawn.timeout_shift);
  const double link_gbps = drawn.options.wire.rate_gbps;
  World world(drawn.options);
  const CopyReport report = run_copy(world, options.copy);
  world.close_timeline();
  print_copy(report, options.copy, link_gbps);
  auto json = copy_json(report, options.copy, link_gbps, options.world.options.seed);
  if (const auto faults = faults_json(world); !faults.empty()) {
    fmt::print("  faults {}\n", faults.dump());
    json["faults"] = faults;
  }
  write_json(options.json, json);
  return report.equal() ? 0 : 1;
}

}  // namespace

void add_copy_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<CopyArguments>();
  auto* command =
      tool.add_subcommand("copy", "Moves FILE from host A to host B by RDMA Write and back by RDMA Read, and compares");
  command->add_option("file", options->copy.file, "File to copy")->required();
  command->add_option("--message", options->copy.message, "Bytes of one Write or Read")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{0x7fffffff}))
      ->capture_default_str();
  command->add_option("--qps", options->copy.qps, "Queue pairs")->check(CLI::Range(1u, 128u))->capture_default_str();
  command->add_option("--mtu", options->copy.mtu, "Path MTU, bytes")
      ->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}))
      ->capture_default_str();
  add_file_options(*command, options->world.options);
  command->add_option("--json", options->json, "Write the figures to this file");
  add_timeline_options(*command, options->world.options);
  add_world_options(*command, options->world);
  // Unlike the benchmark, the main job meets a memory system that is busy with others, so that every seed has a timing
  // of its own.
  auto& pcie = options->world.options.host.root_complex;
  pcie.reorder_probability = pcie.split_probability = 0.1;
  command
      ->add_option("--pcie-reorder", pcie.reorder_probability,
                   "Chance that a DMA read is answered late and out of order")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_faults_option(*command, options->world.options);
  command->callback([options, &action] { action = [options] { return run_copy_command(*options); }; });
}

}  // namespace rnic::testbench
