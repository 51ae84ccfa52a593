#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>

#include "testbench/interrupt.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/progress.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/report_file.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/world_options.hpp"
#include "testbench/traffic/soak_run.hpp"

namespace rnic::testbench {
namespace {

struct SoakArguments {
  SoakOptions soak;
  WorldArguments world;
  FailureFolder failures;
  ReportFile report;
  std::string json;
};

/// Of the whole run, as `seconds` are.
double cycles_per_second(const SoakReport& report, double seconds) {
  return per_second(report.set_up_cycles + report.cycles + report.tear_down_cycles, seconds);
}

nlohmann::ordered_json mix_json(const MixCounts& mix) {
  return {{"requests", mix.requests},
          {"shared_receives", mix.shared_receives},
          {"send_invalidates", mix.send_invalidates},
          {"fast_registrations", mix.fast_registrations},
          {"binds", mix.binds},
          {"keys_ended", mix.keys_ended},
          {"unreliable_sent", mix.unreliable_sent},
          {"unreliable_received", mix.unreliable_received},
          {"datagrams_sent", mix.datagrams_sent},
          {"datagrams_received", mix.datagrams_received},
          {"repeated", mix.repeated},
          {"resizes", mix.resizes}};
}

nlohmann::ordered_json share_json(const ShareCounts& share) {
  return {{"adds", share.adds},
          {"swaps", share.swaps},
          {"swapped", share.swapped},
          {"word_reads", share.word_reads},
          {"cell_writes", share.cell_writes},
          {"cell_reads", share.cell_reads},
          {"cell_looks", share.cell_looks},
          {"fenced", share.fenced},
          {"overwrites", share.overwrites},
          {"events", share.events},
          {"solicited_events", share.solicited_events},
          {"quiet_entries", share.quiet_entries},
          {"overruns", share.overruns}};
}

nlohmann::ordered_json soak_json(const SoakReport& report, const SoakArguments& options) {
  nlohmann::ordered_json kinds;
  for (std::size_t i = 0; i < kTrafficKinds; ++i)
    kinds[name(static_cast<TrafficKind>(i))] = report.traffic.completed[i];
  return {{"seed", options.world.options.seed},
          {"qps", options.soak.traffic.pairs},
          {"completed", report.traffic.total()},
          {"wrong", report.traffic.wrong},
          {"hung", report.traffic.hung},
          {"set_up_cycles", report.set_up_cycles},
          {"cycles", report.cycles},
          {"tear_down_cycles", report.tear_down_cycles},
          {"requests", kinds},
          {"silent", report.traffic.silent},
          {"receives", report.traffic.receives},
          {"bytes", report.traffic.bytes},
          {"registrations", report.traffic.registrations},
          {"binds", report.traffic.binds},
          {"invalidations", report.traffic.invalidations},
          {"mix", mix_json(report.traffic.mix)},
          {"share", share_json(report.traffic.share)},
          {"iommu_faults", report.iommu_faults},
          {"messages", report.traffic.messages}};
}

void print(const SoakReport& report, double seconds) {
  const auto& t = report.traffic;
  fmt::print("  {:<28}{:>14}\n", "requests completed", t.total());
  for (std::size_t i = 0; i < kTrafficKinds; ++i)
    fmt::print("    {:<26}{:>14}\n", name(static_cast<TrafficKind>(i)), t.completed[i]);
  fmt::print("  {:<28}{:>14}\n  {:<28}{:>14}\n  {:<28}{:>14}\n", "bytes", t.bytes, "receives", t.receives,
             "regions of their own", t.registrations);
  fmt::print("  {:<28}{:>14}\n  {:<28}{:>14}\n", "windows bound", t.binds, "windows invalidated", t.invalidations);
  const nlohmann::ordered_json mix = mix_json(t.mix), share = share_json(t.share);
  for (const auto& [what, count] : mix.items())
    fmt::print("  {:<28}{:>14}\n", "mix " + what, count.get<std::uint64_t>());
  for (const auto& [what, count] : share.items())
    fmt::print("  {:<28}{:>14}\n", "share " + what, count.get<std::uint64_t>());
  fmt::print("  {:<28}{:>14}\n  {:<28}{:>14}\n", "wrong", t.wrong, "hung", t.hung);
  fmt::print("  {:<28}{:>14}\n  {:<28}{:>14}\n  {:<28}{:>14}\n", "cycles of set-up", report.set_up_cycles,
             "cycles of traffic", report.cycles, "cycles of tear-down", report.tear_down_cycles);
  fmt::print("  {:<28}{:>14.0f}\n", "cycles per second", cycles_per_second(report, seconds));
  if (report.interrupted)
    fmt::print("  {}: no new work after {} cycles; what was posted has been waited for and checked\n",
               toned("interrupted", Tone::kBad), report.cycles);
  for (const auto& text : t.messages) print_error(text);
}

/// Nothing goes wrong on the wire, nor on either PCI Express.
bool is_orderly(const WorldOptions& world) {
  for (const auto& faults : world.wire.faults) {
    for (std::size_t i = 0; i < model::kWireFaults; ++i) {
      if (faults.chance(static_cast<model::WireFault>(i)) > 0) return false;
    }
    if (!faults.rules.empty()) return false;
  }
  return !world.pcie_faults[0] && !world.pcie_faults[1];
}

/// What the report has at its head.
void show_soak(ReportFile& page, const SoakReport& report, const nlohmann::ordered_json& json,
               const nlohmann::ordered_json& wall_clock) {
  page.add_figure("Requests completed", "all", json.at("completed"));
  for (const auto& [kind, count] : json.at("requests").items()) page.add_figure("Requests completed", kind, count);
  for (const auto* key : {"wrong", "hung", "bytes", "receives", "silent", "registrations", "binds", "invalidations"})
    page.add_figure("Checked", key, json.at(key));
  page.add_figure("Clock cycles", "traffic", json.at("cycles"));
  page.add_figure("Clock cycles", "set-up", json.at("set_up_cycles"));
  page.add_figure("Clock cycles", "tear-down", json.at("tear_down_cycles"));
  const std::string by_user = report.interrupted ? ", interrupted by the user" : "";
  page.set_outcome(report.good() && !report.interrupted,
                   (report.good() ? std::string("every request and every byte was right")
                                  : fmt::format("{} wrong, {} hung", report.traffic.wrong, report.traffic.hung)) +
                       by_user);
  page.set("results", json);
  page.set("wall_clock", wall_clock);
}

int run_soak_command(SoakArguments& options) {
  check_files(options.world.options);
  check_writable(options.json, "--json");
  options.report.check();
  const auto start = std::chrono::steady_clock::now();
  DrawnWorld drawn = options.world.draw();
  options.report.observe(drawn.options);
  World world(drawn.options);
  SoakOptions soak = options.soak;
  soak.orderly = is_orderly(drawn.options);
  soak.traffic.may_overflow = options.world.drawn_from.has_value();
  auto& ack_timeout = soak.traffic.connection.ack_timeout;
  ack_timeout = static_cast<std::uint8_t>(ack_timeout + drawn.timeout_shift);
  SoakReport report;
  catch_interrupts();
  const std::string name = fmt::format("soak-{}", options.world.options.seed);
  try {
    Progress progress("soak", options.soak.cycles);
    report = options.report.watch(world, [&] {
      return run_soak(world, soak, options.world.options.seed,
                      [&](std::uint64_t cycles) { progress.update(std::min(cycles, options.soak.cycles)); });
    });
  } catch (const std::exception&) {
    options.failures.leave(name, command_line(), world.now_ns());
    throw;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  world.close_timeline();
  print(report, seconds);
  const auto json = soak_json(report, options);
  const nlohmann::ordered_json wall_clock = {{"seconds", seconds},
                                             {"simulated_cycles_per_second", cycles_per_second(report, seconds)}};
  const Outcome outcome = outcome_of(report.good(), report.interrupted);
  write_json(options.json, result_json("soak", outcome, json, wall_clock));
  show_soak(options.report, report, json, wall_clock);
  options.report.write();
  print_written(drawn.options, {options.report.path(), options.json});
  if (report.good()) return exit_code(outcome);
  const auto wrong_at = report.traffic.wrong_at;
  options.failures.leave(
      name, command_line(),
      wrong_at == 0 ? world.now_ns() : (wrong_at - world.epoch()) / model::kPicosecondsPerNanosecond);
  return 1;
}

}  // namespace

void add_soak_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<SoakArguments>();
  auto& traffic = options->soak.traffic;
  traffic.pairs = 64;
  traffic.mixes = 2;
  traffic.shares = 1;
  auto* command = add_command(tool, "soak");
  command->add_option("--cycles", options->soak.cycles, "Clock cycles with new work; 1M: a million")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(count_size())
      ->capture_default_str();
  command->add_option("--qps", traffic.pairs, "Queue pairs of each host")
      ->check(CLI::Range(1u, 200u))
      ->capture_default_str();
  command->add_option("--mixes", traffic.mixes, "Threads with shared receive queues, keys that come and go, UC and UD")
      ->check(CLI::Range(0u, 4u))
      ->capture_default_str();
  command
      ->add_option("--shares", traffic.shares,
                   "Groups of queue pairs that share memory, with atomics and fences, served by threads that sleep")
      ->check(CLI::Range(0u, 2u))
      ->capture_default_str();
  command->add_option("--late-receives", traffic.late_receive_chance, "Chance that a Receive is posted after its SEND")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option(
          "--hang-us",
          [&traffic](const CLI::results_t& text) {
            std::uint64_t microseconds = 0;
            if (!CLI::detail::lexical_cast(text.front(), microseconds) || microseconds == 0 ||
                microseconds > 10'000'000)
              return false;
            traffic.hang_ns = microseconds * 1'000;
            return true;
          },
          "Simulated time without completion that counts as a hang, us")
      ->type_name("UINT")
      ->default_str(std::to_string(traffic.hang_ns / 1'000));
  options->failures.add_option(*command);
  add_file_options(*command, options->world.options);
  add_json_option(*command, options->json);
  add_timeline_options(*command, options->world.options);
  options->report.add_option(*command);
  add_world_options(*command, options->world);
  auto& pcie = options->world.options.host.root_complex;
  pcie.reorder_probability = pcie.split_probability = 0.1;
  for (auto& faults : options->world.options.wire.faults) {
    faults.drop = faults.reorder = 0.01;
    faults.duplicate = 0.005;
    faults.corrupt = 0.001;
  }
  traffic.connection.ack_timeout = 6;  // 0.26 ms: the queues are long, and the world is small
  add_faults_option(*command, options->world);
  command->add_flag_callback(
      "--no-faults", [options] { options->world.options.wire.faults = {}; },
      "Nothing goes wrong, so that nothing may be repaired either; otherwise, without --faults, 1 % of the frames are "
      "lost, 1 % late, 0.5 % twice, 0.1 % corrupt");
  command->callback([options, &action] { action = [options] { return run_soak_command(*options); }; });
}

}  // namespace rnic::testbench
