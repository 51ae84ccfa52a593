#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "testbench/compare/compare_run.hpp"
#include "testbench/compare/freedoms.hpp"
#include "testbench/interrupt.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/progress.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct CompareArguments {
  CompareOptions compare;
  WorldArguments world;
  std::string json;
  std::string vectors = "rnic-differences";
  std::string planted;
  bool freedoms = false;
};

const std::map<std::string, PlantedDifference> kPlanted = {{"extra-right", PlantedDifference::kExtraRight},
                                                           {"long-region", PlantedDifference::kLongRegion},
                                                           {"short-queue", PlantedDifference::kShortQueue}};

void print_freedoms() {
  for (const auto& entry : kFreedoms) fmt::print("| {} | {} | {} |\n", entry.name, entry.instead, entry.clause);
}

nlohmann::ordered_json compare_json(const CompareReport& report, const CompareArguments& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& one : report.differences) {
    list.push_back({{"seed", one.seed},
                    {"operations", one.operations},
                    {"kind", one.difference.kind},
                    {"place", one.difference.place},
                    {"sort", one.difference.sort},
                    {"text", one.difference.text},
                    {"drawn", {{"place", one.found.place}, {"sort", one.found.sort}, {"text", one.found.text}}}});
  }
  return {{"seed", options.world.options.seed},
          {"operations", report.operations},
          {"differences", report.differences.size()},
          {"difference", list},
          {"programs", report.programs},
          {"completions", report.completions},
          {"packets", report.packets},
          {"drawn", report.drawn},
          {"outcomes", report.outcomes},
          {"failures", report.failures}};
}

void print(const CompareReport& report, double seconds) {
  const auto row = [](const std::string& name, std::uint64_t value) { fmt::print("  {:<40}{:>14}\n", name, value); };
  row("operations", report.operations);
  row("programs", report.programs);
  for (const auto& [name, count] : report.drawn) row("  " + name, count);
  row("completions", report.completions);
  for (const auto& [name, count] : report.outcomes) row("  " + name, count);
  row("packets compared", report.packets);
  for (const auto& [name, count] : report.failures) row(name, count);
  row("operations per second", static_cast<std::uint64_t>(per_second(report.operations, seconds)));
  row("differences", report.differences.size());
  if (report.interrupted)
    fmt::print("  {}: no program was begun after {}\n", toned("interrupted", Tone::kBad),
               counted(report.operations, "operation"));
}

/// The shortest program of a difference, as a vector.
std::filesystem::path write_vector(const std::string& folder, const FoundDifference& one) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto file = std::filesystem::path(folder) / fmt::format("compare-{}.json", one.seed);
  std::ofstream out(file);
  out << one.vector.dump(2) << '\n';
  out.close();
  if (!out) throw UsageError(fmt::format("--vectors: cannot write '{}'", file.string()));
  return file;
}

int run_compare_command(CompareArguments& options) {
  if (options.freedoms) {
    print_freedoms();
    return 0;
  }
  check_writable(options.json, "--json");
  auto& compare = options.compare;
  if (const auto it = kPlanted.find(options.planted); it != kPlanted.end()) compare.planted = it->second;
  const auto& nics = options.world.options.nics;
  const std::array<NicKind, 2> kinds = {nics[0].value_or(NicKind::kRtl), nics[1].value_or(NicKind::kModel)};
  const WorldOptions world = options.world.draw().options;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    compare.worlds[i] = world;
    compare.worlds[i].nics.fill(kinds[i]);
    compare.worlds[i].threads = 1;  // the cores have programs of their own
  }
  compare.seed = world.seed;
  compare.limits.scenario = !options.world.files.texts().empty();
  const auto start = std::chrono::steady_clock::now();
  CompareReport report;
  catch_interrupts();
  {
    Progress progress("compare", compare.operations);
    report = run_compare(compare, [&](std::uint64_t done) { progress.update(std::min(done, compare.operations)); });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print(report, seconds);
  const Outcome outcome = outcome_of(report.differences.empty(), report.interrupted);
  write_json(options.json,
             result_json("compare", outcome, compare_json(report, options),
                         {{"seconds", seconds}, {"operations_per_second", per_second(report.operations, seconds)}}));
  for (const auto& one : report.differences) {
    print_error(fmt::format("seed {}, {} of {}: {} ({}): {}", one.seed, one.difference.kind, one.difference.place,
                            one.difference.text, counted(one.operations, "operation"),
                            write_vector(options.vectors, one).string()));
  }
  return exit_code(outcome);
}

}  // namespace

void add_compare_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<CompareArguments>();
  auto* command = add_command(tool, "compare", "; report what differs, and the shortest program that shows it");
  command->add_option("--operations", options->compare.operations, "Operations to do, at least; 1M: a million")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(count_size())
      ->capture_default_str();
  command->add_option("--program", options->compare.limits.operations, "Operations of each program, about")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000}))
      ->capture_default_str();
  command->add_option("--jobs", options->compare.jobs, "Programs at a time")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  command->add_option("--differences", options->compare.most_differences, "Differences after which it ends")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000}))
      ->capture_default_str();
  command->add_flag_callback(
      "--no-shrink", [options] { options->compare.shrinks = false; },
      "Tell of each difference in the program in which it came, which is sooner, not in the shortest");
  command->add_option("--vectors", options->vectors, "Folder for the shortest program of each difference, as a vector")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->add_flag("--freedoms", options->freedoms, "Run nothing; print what is not compared, and why");
  add_json_option(*command, options->json);
  // For tests of what comes of a difference; not in the help.
  command->add_option("--planted", options->planted, "What the first world is given besides")
      ->check(CLI::IsMember(kPlanted))
      ->group("");
  add_faults_option(*command, options->world);
  add_world_options(*command, options->world);
  command->callback([options, &action] { action = [options] { return run_compare_command(*options); }; });
}

}  // namespace rnic::testbench
