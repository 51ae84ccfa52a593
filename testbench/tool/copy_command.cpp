#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <fstream>
#include <memory>

#include "driver/generated/host_interface.hpp"
#include "testbench/interrupt.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/copy.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/report_file.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct CopyArguments {
  CopyOptions copy;
  WorldArguments world;
  ReportFile report;
  std::string json;
};

/// What the report has at its head: the figures of `json`.
void show_copy(ReportFile& page, const CopyReport& report, const CopyOptions& options, double link_gbps,
               const nlohmann::ordered_json& json) {
  for (const auto& [key, title] : {std::pair{"write", "RDMA Write"}, std::pair{"read", "RDMA Read"}}) {
    const auto& phase = json.at(key);
    page.add_figure(title, "goodput", phase.at("goodput_gbps"), "Gbit/s");
    page.add_figure(title, "of what the wire allows", phase.at("goodput_fraction"), "share");
    page.add_figure(title, "latency, median", phase.at("latency_median_ns"), "ns");
    page.add_figure(title, "latency, 99 %", phase.at("latency_p99_ns"), "ns");
    page.add_figure(title, "messages", phase.at("messages"));
    page.add_figure(title, "bytes", phase.at("bytes"));
    page.add_figure(title, "simulated time", phase.at("simulated_ns"), "ns");
  }
  page.add_limit("what the wire allows", link_gbps * wire_payload_share(options.message, options.mtu, false));
  page.set_outcome(report.equal(), report.interrupted ? "interrupted by the user"
                                   : report.equal()   ? "the three SHA-256 are equal"
                                                      : "the SHA-256 differ");
  auto results = json;
  results.erase("counters");
  page.set("results", results);
  page.set("wall_clock", copy_wall_clock(report));
}

int run_copy_command(CopyArguments& options) {
  if (!std::filesystem::is_regular_file(options.copy.file) || !std::ifstream(options.copy.file)) {
    throw UsageError(fmt::format("cannot read file '{}'", options.copy.file.string()));
  }
  // There and back.
  check_files(options.world.options, 2 * std::filesystem::file_size(options.copy.file));
  check_writable(options.json, "--json");
  options.report.check();
  DrawnWorld drawn = options.world.draw();
  options.report.observe(drawn.options);
  options.copy.mtu = drawn.mtu.value_or(options.copy.mtu);
  options.copy.ack_timeout = static_cast<std::uint8_t>(options.copy.ack_timeout + drawn.timeout_shift);
  const double link_gbps = drawn.options.wire.rate_gbps;
  drawn.options.interruptible = true;
  catch_interrupts();
  World world(drawn.options);
  const CopyReport report = options.report.watch(world, [&] { return run_copy(world, options.copy); });
  world.close_timeline();
  print_copy(report, options.copy, link_gbps);
  auto json = copy_json(report, options.copy, link_gbps, options.world.options.seed);
  if (const auto faults = faults_json(world); !faults.empty()) {
    fmt::print("  faults {}\n", faults.dump());
    json["faults"] = faults;
  }
  const Outcome outcome = report.interrupted ? Outcome::kInterrupted
                          : report.equal()   ? Outcome::kPassed
                                             : Outcome::kFailed;
  write_json(options.json, result_json("copy", outcome, json, copy_wall_clock(report)));
  show_copy(options.report, report, options.copy, link_gbps, json);
  options.report.write();
  print_written(drawn.options, {options.report.path(), options.json});
  return report.interrupted ? kInterruptedCode : report.equal() ? 0 : 1;
}

}  // namespace

void add_copy_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<CopyArguments>();
  auto* command = add_command(tool, "copy");
  command->add_option("file", options->copy.file, "File to copy")->type_name("FILE")->required();
  command->add_option("--message", options->copy.message, "Bytes of one Write or Read; 64k, 1M: KiB, MiB")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{hw::kMaxMessageBytes}))
      ->transform(byte_size())
      ->capture_default_str();
  command->add_option("--qps", options->copy.qps, "Queue pairs")->check(CLI::Range(1u, 128u))->capture_default_str();
  command->add_option("--mtu", options->copy.mtu, "Path MTU, bytes")
      ->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}))
      ->transform(byte_size())
      ->capture_default_str();
  add_file_options(*command, options->world.options);
  add_json_option(*command, options->json);
  add_timeline_options(*command, options->world.options);
  options->report.add_option(*command);
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
  add_faults_option(*command, options->world);
  command->callback([options, &action] { action = [options] { return run_copy_command(*options); }; });
}

}  // namespace rnic::testbench
