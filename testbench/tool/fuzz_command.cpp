#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>
#include <memory>

#include "testbench/fuzz/fuzz_run.hpp"
#include "testbench/interrupt.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/progress.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

struct FuzzArguments {
  FuzzOptions fuzz;
  WorldArguments world;
  std::string json;
  std::string corpus;
  FailureFolder failures;
};

/// Of the whole run, as `seconds` are.
double cycles_per_second(const FuzzReport& report, double seconds) {
  return per_second(report.set_up_cycles + report.cycles + report.tear_down_cycles, seconds);
}

void print(const FuzzReport& report, double seconds) {
  const auto row = [](const std::string& name, std::uint64_t value) { fmt::print("  {:<40}{:>14}\n", name, value); };
  row("frames", report.frames);
  row("  of them to live queue pairs, PSN right", report.live);
  row("WQEs", report.wqes);
  row("packets without a secret byte", report.judged);
  row("accesses to the page of a process", report.accesses);
  row("connections made anew", report.renewals);
  row("completions of the attackers", report.completions);
  row("  of them successes", report.successes);
  row("requests of the victims, all right", report.victim_requests);
  for (const auto& [name, value] : report.counters) row("counter " + name, value);
  row("episodes", report.episodes);
  row("cycles of set-up", report.set_up_cycles);
  row("cycles with frames", report.cycles);
  row("cycles of tear-down", report.tear_down_cycles);
  row("cycles per second", static_cast<std::uint64_t>(cycles_per_second(report, seconds)));
  row("frames per second", seconds > 0 ? static_cast<std::uint64_t>(static_cast<double>(report.frames) / seconds) : 0);
  row("violations", report.violations.size());
  if (report.interrupted)
    fmt::print("  {}: no frame was sent after {}; what was under way has been checked\n",
               toned("interrupted", Tone::kBad), report.frames);
}

nlohmann::ordered_json fuzz_json(const FuzzReport& report, const FuzzArguments& options) {
  nlohmann::ordered_json notes = nlohmann::ordered_json::array();
  for (const auto& one : report.violations) notes.push_back({{"seed", one.seed}, {"note", one.note}});
  return {{"seed", options.world.options.seed},
          {"frames", report.frames},
          {"live", report.live},
          {"wqes", report.wqes},
          {"judged", report.judged},
          {"outcomes", report.outcomes},
          {"answers", report.answers},
          {"violations", report.violations.size()},
          {"violation", notes},
          {"accesses", report.accesses},
          {"renewals", report.renewals},
          {"completions", report.completions},
          {"successes", report.successes},
          {"victim_requests", report.victim_requests},
          {"counters", report.counters},
          {"episodes", report.episodes},
          {"set_up_cycles", report.set_up_cycles},
          {"cycles", report.cycles},
          {"tear_down_cycles", report.tear_down_cycles}};
}

/// The episode of a violation alone, on a copy of the corpus if it was the first: what is found again is written to
/// it.
void leave_failure(FuzzArguments& options, const CorpusEntry& one) {
  const bool first = one.seed == options.world.options.seed;
  const auto name = fmt::format("fuzz-{}", one.seed);
  auto arguments = command_line({"--seed", "--frames", "--episode", "--corpus"});
  if (first && !options.corpus.empty() && options.failures.wanted()) {
    const auto copy = options.failures.of(name) / "corpus";
    std::error_code error;
    std::filesystem::remove_all(copy, error);
    std::filesystem::create_directories(copy, error);
    std::filesystem::copy(options.corpus, copy, error);
    arguments.insert(arguments.end(), {"--corpus", copy.string()});
  }
  const auto frames = std::to_string(one.run_frames);
  arguments.insert(arguments.end(), {"--seed", std::to_string(one.seed), "--frames", frames, "--episode", frames});
  options.failures.leave(name, std::move(arguments), one.at_ns);
}

int run_fuzz_command(FuzzArguments options) {
  check_writable(options.json, "--json");
  check_files(options.world.options);
  try {
    if (!options.corpus.empty()) {
      options.fuzz.corpus = read_corpus(options.corpus);
      check_writable(std::filesystem::path(options.corpus) / "violation.json", "--corpus");
    }
  } catch (const CorpusError& error) {
    throw UsageError(fmt::format("--corpus: {}", error.what()));
  }
  const auto start = std::chrono::steady_clock::now();
  const DrawnWorld drawn = options.world.draw();
  World world(drawn.options);
  FuzzReport report;
  catch_interrupts();
  {
    Progress progress("fuzz", options.fuzz.frames);
    report = run_fuzz(world, drawn.options, options.fuzz,
                      [&](std::uint64_t frames) { progress.update(std::min(frames, options.fuzz.frames)); });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print(report, seconds);
  const Outcome outcome = outcome_of(report.violations.empty(), report.interrupted);
  write_json(options.json,
             result_json("fuzz", outcome, fuzz_json(report, options),
                         {{"seconds", seconds}, {"simulated_cycles_per_second", cycles_per_second(report, seconds)}}));
  for (const auto& one : report.violations) leave_failure(options, one);  // while the corpus is what it was
  for (const auto& one : report.violations) {
    print_error(fmt::format("violation with seed {}: {}", one.seed, one.note));
    if (!options.corpus.empty()) print_error(fmt::format("written to {}", write_corpus(options.corpus, one).string()));
  }
  return exit_code(outcome);
}

}  // namespace

void add_fuzz_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<FuzzArguments>();
  auto* command = add_command(tool, "fuzz");
  command->add_option("--frames", options->fuzz.frames, "Frames to send; 1M: a million")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(count_size())
      ->capture_default_str();
  command
      ->add_option("--episode", options->fuzz.episode_frames, "Frames until the world starts anew, with the next seed")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(count_size())
      ->capture_default_str();
  // For tests of what comes after a violation; not in the help.
  command
      ->add_option_function<std::string>(
          "--planted", [options](const std::string&) { options->fuzz.planted = PlantedFault::kSharedDomain; },
          "A fault of the kernel driver that the fuzzer must find")
      ->check(CLI::IsMember({"shared-domain"}))
      ->group("");
  command
      ->add_option("--corpus", options->corpus, "Folder: what it holds is replayed first, violations are written to it")
      ->type_name("FOLDER");
  options->failures.add_option(*command);
  add_file_options(*command, options->world.options, "both NICs in the last episode");
  add_json_option(*command, options->json);
  add_world_options(*command, options->world);
  command->callback([options, &action] { action = [options] { return run_fuzz_command(*options); }; });
}

}  // namespace rnic::testbench
