#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "testbench/tool/commands.hpp"
#include "testbench/tool/coverage.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/report_file.hpp"
#include "testbench/tool/verify_device.hpp"
#include "testbench/tool/verify_junit.hpp"
#include "testbench/tool/world_options.hpp"
#include "testbench/verify/clause_list.hpp"
#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_grade.hpp"
#include "testbench/verify/vector_workers.hpp"

namespace rnic::testbench {
namespace {

struct VerifyArguments {
  std::vector<std::filesystem::path> paths;
  std::string junit;
  bool list = false;
  bool check = false;
  bool grades = false;
  DeviceArguments device;
  std::string grade;  ///< Vectors of this one alone; all if empty
  bool coverage = false;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  WorldArguments world;
  FailureFolder failures;
  ReportFile report;
};

std::size_t index_of(VectorGrade grade) { return static_cast<std::size_t>(grade); }

/// "1 verbs, 2 wire, 3 nic".
std::string count_grades(const std::vector<Vector>& vectors) {
  std::array<std::size_t, kGradeNames.size()> counts{};
  for (const auto& vector : vectors) ++counts.at(index_of(grade_of(vector).grade));
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", counts.at(i), kGradeNames.at(i));
  return text;
}

int print_grades(const std::vector<Vector>& vectors) {
  for (const auto& vector : vectors) {
    const auto grading = grade_of(vector);
    fmt::print("{:<5} {}{}\n", kGradeNames.at(index_of(grading.grade)), vector.file.string(),
               grading.reason.empty() ? "" : ": " + grading.reason);
  }
  fmt::print("{} vectors: {}\n", vectors.size(), count_grades(vectors));
  return 0;
}

/// The vectors to be run or listed.
std::vector<Vector> wanted_vectors(const VerifyArguments& options, const std::vector<std::filesystem::path>& paths) {
  auto vectors = load_vectors(paths);
  if (options.grade.empty()) return vectors;
  std::erase_if(
      vectors, [&](const Vector& vector) { return kGradeNames.at(index_of(grade_of(vector).grade)) != options.grade; });
  if (vectors.empty()) throw UsageError(fmt::format("--grade: there is no vector of the grade {}", options.grade));
  return vectors;
}

/// Vectors of each clause, by document, and the clauses of the lists (kClauseFile of the folders given) that no vector
/// names.
void print_list(const VerifyArguments& options, const std::vector<Vector>& vectors) {
  std::map<std::string, std::map<std::string, int>> documents;
  for (const auto& vector : vectors) ++documents[vector.document][vector.clause];
  for (const auto& [document, clauses] : documents) {
    fmt::print("{:<100}{:>8}\n", document, "vectors");
    for (const auto& [clause, count] : clauses) fmt::print("  {:<98}{:>8}\n", clause, count);
    fmt::print("\n");
  }
  std::size_t listed = 0, missing = 0;
  for (const auto& path : options.paths) {
    const auto file = path / kClauseFile;
    if (!std::filesystem::exists(file)) continue;
    fmt::print("clauses of {} without a vector\n", file.string());
    for (const auto& clause : load_clauses(file)) {
      ++listed;
      if (std::any_of(vectors.begin(), vectors.end(), [&](const Vector& vector) { return covers(vector, clause); }))
        continue;
      ++missing;
      fmt::print("  {}, {}: {}\n", clause.document, clause.number, clause.subject);
    }
    fmt::print("\n");
  }
  fmt::print("{} vectors; {} clauses listed, {} without a vector\ngrades: {}\n", vectors.size(), listed, missing,
             count_grades(vectors));
}

/// Says of each file what is wrong with it.
int check_vectors(const VerifyArguments& options) {
  const auto files = vector_files(options.paths);
  std::size_t malformed = 0;
  for (const auto& file : files) {
    try {
      static_cast<void>(load_vector(file));
    } catch (const VectorError& error) {
      ++malformed;
      fmt::print("malformed: {}\n", error.what());
    }
  }
  fmt::print("{} files, {} malformed\n", files.size(), malformed);
  return malformed == 0 ? 0 : 2;
}

void print_clauses(const std::vector<VerifyLine>& lines) {
  struct Count {
    int passed = 0, failed = 0;
  };
  std::map<std::string, std::map<std::string, Count>> documents;
  for (const auto& line : lines) {
    if (line.skipped) continue;
    auto& count = documents[line.vector->document][line.vector->clause];
    ++(line.outcome.passed ? count.passed : count.failed);
  }
  for (const auto& [document, clauses] : documents) {
    fmt::print("\n{:<76}{:>8}{:>8}\n", document, "passed", "failed");
    for (const auto& [clause, count] : clauses) fmt::print("  {:<74}{:>8}{:>8}\n", clause, count.passed, count.failed);
  }
}

/// Clock cycles of a NIC that the vectors took together, and for what.
void print_cycles(const std::vector<VerifyLine>& lines, double seconds) {
  constexpr std::uint64_t kNsPerCycle = 4;
  std::uint64_t set_up = 0, steps = 0, all = 0;
  for (const auto& line : lines) {
    set_up += line.outcome.set_up_ns / kNsPerCycle;
    steps += line.outcome.simulated_ns / kNsPerCycle;
    all += line.outcome.cycles;
  }
  fmt::print("\n{:<24}{:>14}\n", "cycles", all);
  fmt::print("  {:<22}{:>14}\n  {:<22}{:>14}\n  {:<22}{:>14}\n", "set-up", set_up, "steps", steps, "rest, tear-down",
             all - std::min(all, set_up + steps));
  fmt::print("{:<24}{:>14.0f}\n", "cycles per second", per_second(all, seconds));
}

/// The vectors that failed, run again one by one.
void leave_failures(VerifyArguments& options, const std::vector<VerifyLine>& lines) {
  std::vector<std::string> arguments = command_line({"--jobs"});
  std::erase_if(arguments, [&](const std::string& argument) {
    return argument == "--coverage" ||
           std::find(options.paths.begin(), options.paths.end(), argument) != options.paths.end();
  });
  for (const auto& line : lines) {
    if (line.outcome.passed || line.outcome.failed_ns == 0 || !options.failures.wanted()) continue;
    fmt::print("\n{}\n", line.vector->file.string());
    auto own = arguments;
    own.insert(own.end(), {"--jobs", "1", line.vector->file.string()});
    const auto& file = line.vector->file;
    options.failures.leave(fmt::format("{}-{}-{}", file.parent_path().filename().string(), file.stem().string(),
                                       options.world.options.seed),
                           std::move(own), line.outcome.failed_ns);
  }
}

/// What the report of one vector has at its head.
void show_vector(ReportFile& page, const VerifyLine& line) {
  const auto* const vector = line.vector;
  const auto& outcome = line.outcome;
  page.set("vector", {{"file", vector->file.filename().string()},
                      {"document", vector->document},
                      {"clause", vector->clause},
                      {"rule", vector->rule}});
  page.add_figure("Vector", "steps", outcome.simulated_ns, "ns");
  page.add_figure("Vector", "set-up", outcome.set_up_ns, "ns");
  page.add_figure("Vector", "clock cycles in all", outcome.cycles, "cycles");
  page.set_outcome(outcome.passed, outcome.passed ? "passed" : outcome.message);
}

/// On a device of this machine instead of simulated hosts.
int run_on_device(const VerifyArguments& options, const std::vector<Vector>& vectors) {
  const auto lines = verify_on_device(options.device, vectors);
  print_clauses(lines);
  const auto count = [&lines](const auto& which) { return std::count_if(lines.begin(), lines.end(), which); };
  const auto skipped = count([](const VerifyLine& line) { return line.skipped; });
  const auto failed = count([](const VerifyLine& line) { return !line.outcome.passed; });
  const auto all = static_cast<std::ptrdiff_t>(lines.size());
  fmt::print("\n{} passed, {} failed, {} skipped; {} of higher grades left out\n", all - failed - skipped, failed,
             skipped, static_cast<std::ptrdiff_t>(vectors.size()) - all);
  write_junit(options.junit, lines, {});
  return failed == 0 ? 0 : 1;
}

int run_verify_command(VerifyArguments& options) {
  check_writable(options.junit, "--junit");
  options.report.check();
  check_files(options.world.options);
  if (options.check) return check_vectors(options);
  if ((options.list || options.grades || !options.grade.empty() || !options.device.names.empty()) && options.coverage)
    throw UsageError("--coverage needs the results of all vectors that it names");
  std::optional<Coverage> coverage;
  if (options.coverage) coverage.emplace(options.paths);
  const auto vectors = wanted_vectors(options, coverage ? coverage->vectors() : options.paths);
  if (options.grades) return print_grades(vectors);
  const auto& files = options.world.options;
  if (!(files.trace_path.empty() && files.capture_path.empty()) && vectors.size() != 1)
    throw UsageError("--trace and --pcap record one vector");
  if (options.list) {
    print_list(options, vectors);
    return 0;
  }
  if (!options.world.options.timeline_path.empty() && vectors.size() != 1)
    throw UsageError("--timeline shows one vector");
  if (options.report.wanted() && vectors.size() != 1) throw UsageError("--report shows one vector");
  if (!options.device.names.empty()) return run_on_device(options, vectors);
  std::vector<VerifyLine> lines;
  const auto start = std::chrono::steady_clock::now();
  WorldOptions world = options.world.draw().options;
  options.report.observe(world);
  if (options.jobs > 1) world.threads = 1;  // the cores have vectors of their own
  run_vectors(vectors, world, options.jobs, [&](std::size_t index, const VectorOutcome& outcome) {
    lines.push_back({&vectors[index], outcome});
    if (coverage) coverage->note(vectors[index].file, outcome.passed);
    fmt::print("{} {}{}\n", outcome.passed ? "pass" : "FAIL", vectors[index].file.string(),
               outcome.passed ? "" : ": " + outcome.message);
    std::fflush(stdout);
  });
  if (coverage)
    coverage->print();
  else
    print_clauses(lines);
  const auto passed =
      std::count_if(lines.begin(), lines.end(), [](const VerifyLine& line) { return line.outcome.passed; });
  print_cycles(lines, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  fmt::print("\n{} passed, {} failed\n", passed, static_cast<std::ptrdiff_t>(lines.size()) - passed);
  write_junit(options.junit, lines, coverage ? coverage->cases() : std::vector<Coverage::Case>{});
  if (options.report.wanted()) show_vector(options.report, lines.front());
  options.report.write();
  leave_failures(options, lines);
  return passed == static_cast<std::ptrdiff_t>(lines.size()) && (!coverage || coverage->complete()) ? 0 : 1;
}

void add_device_options(CLI::App& command, DeviceArguments& device) {
  command
      .add_option("--device", device.names,
                  "Run the vectors of the grade verbs on this device of libibverbs, whose port sends to itself; two of "
                  "them: from the first to the second, and back")
      ->allow_extra_args(false);
  command.add_flag("--in-part", device.in_part,
                   "With --device: also vectors of higher grades all of whose steps the device can do, without what it "
                   "cannot show: packets, counters, causes of events");
  command
      .add_option("--patience", device.patience_s,
                  "With --device: seconds that are waited for a completion or an event")
      ->check(CLI::Range(1u, 3600u))
      ->capture_default_str();
  command
      .add_option("--settle", device.settle_ms,
                  "With --device: milliseconds that are waited for what must not come, and at the end")
      ->check(CLI::Range(1u, 60'000u))
      ->capture_default_str();
}

}  // namespace

void add_verify_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<VerifyArguments>();
  auto* command = tool.add_subcommand("verify", "Runs test vectors (docs/vectors.md) on the RTL");
  command->add_option(
      "paths", options->paths,
      "Vector files, or folders of them; with --coverage folders with lists of statements (tests/vectors)");
  command->add_option("--junit", options->junit, "Write the results to this file as JUnit XML");
  command->add_flag(
      "--list", options->list,
      "Run nothing; print documents and clauses with their vectors, and the clauses of clauses.json that have none");
  command
      ->add_option("--grade", options->grade,
                   "Vectors of this grade alone: those for any device of libibverbs, those that also need its wire, "
                   "those for this NIC and its driver (docs/vectors.md, Grades)")
      ->check(CLI::IsMember(std::vector<std::string>(kGradeNames.begin(), kGradeNames.end())));
  add_device_options(*command, options->device);
  command->add_flag("--grades", options->grades,
                    "Run nothing; print the grade of each vector, and what in it asks for that grade");
  command->add_flag("--check", options->check,
                    "Run nothing; say of each file what is wrong with it (docs/vectors.schema.json)");
  command->add_flag("--coverage", options->coverage,
                    "Run the vectors that the statements of statements.json name, and print for each statement of each "
                    "document what came of them");
  command->add_option("--jobs", options->jobs, "Vectors at a time; with more than one each has one thread")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  add_timeline_options(*command, options->world.options);
  options->report.add_option(*command);
  options->failures.add_option(*command);
  add_file_options(*command, options->world.options, "both NICs in one vector");
  add_world_options(*command, options->world);
  command->callback([options, &action] {
    if (options->device.names.size() > 2) throw CLI::ValidationError("--device", "a vector has two hosts");
    if (options->paths.empty()) {
      if (!options->coverage) throw CLI::RequiredError("paths");
      options->paths = {"tests/vectors"};
    }
    action = [options] { return run_verify_command(*options); };
  });
}

}  // namespace rnic::testbench
