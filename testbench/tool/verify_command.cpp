#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "testbench/interrupt.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/coverage.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/progress.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/report_file.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/verify_device.hpp"
#include "testbench/tool/verify_junit.hpp"
#include "testbench/tool/verify_summary.hpp"
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
  std::string json;
  bool quiet = false;
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
  fmt::print("{}: {}\n", counted(vectors.size(), "vector"), count_grades(vectors));
  return 0;
}

/// The vectors to be run or listed, and the files that are none.
struct WantedVectors {
  std::vector<Vector> vectors;
  std::vector<std::pair<Vector, std::string>> malformed;  ///< With its name only, and what is wrong with it
};

/// Throws VectorError as vector_files, and for a malformed file unless `goes_on`.
WantedVectors wanted_vectors(const VerifyArguments& options, const std::vector<std::filesystem::path>& paths,
                             bool goes_on) {
  WantedVectors wanted;
  for (const auto& file : vector_files(paths)) {
    try {
      wanted.vectors.push_back(load_vector(file));
    } catch (const VectorError& error) {
      if (!goes_on) throw;
      wanted.malformed.emplace_back(Vector{}, error.what());
      wanted.malformed.back().first.file = file;
    }
  }
  if (options.grade.empty()) return wanted;
  std::erase_if(wanted.vectors, [&](const Vector& vector) {
    return kGradeNames.at(index_of(grade_of(vector).grade)) != options.grade;
  });
  if (wanted.vectors.empty() && wanted.malformed.empty())
    throw UsageError(fmt::format("--grade: there is no vector of the grade {}", options.grade));
  return wanted;
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
  fmt::print("{}; {} listed, {} without a vector\ngrades: {}\n", counted(vectors.size(), "vector"),
             counted(listed, "clause"), missing, count_grades(vectors));
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
  fmt::print("{}, {} malformed\n", counted(files.size(), "file"), malformed);
  return malformed == 0 ? 0 : 2;
}

/// The vectors that failed, run again one by one.
void leave_failures(VerifyArguments& options, std::vector<VerifyLine>& lines) {
  std::vector<std::string> arguments = command_line({"--jobs"});
  std::erase_if(arguments, [&](const std::string& argument) {
    return argument == "--coverage" || argument == "--quiet" ||
           std::find(options.paths.begin(), options.paths.end(), argument) != options.paths.end();
  });
  for (auto& line : lines) {
    if (!line.failed() || line.outcome.failed_ns == 0 || !options.failures.wanted()) continue;
    fmt::print("\n{}\n", line.vector->file.string());
    auto own = arguments;
    own.insert(own.end(), {"--jobs", "1", line.vector->file.string()});
    const auto& file = line.vector->file;
    const auto name = fmt::format("{}-{}-{}", file.parent_path().filename().string(), file.stem().string(),
                                  options.world.options.seed);
    line.evidence = options.failures.leave(name, std::move(own), line.outcome.failed_ns);
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

/// Writes the results, and says of each malformed file what is wrong. The exit code.
int end_verify(VerifyArguments& options, const std::vector<VerifyLine>& lines, double seconds,
               const Coverage* coverage) {
  const auto counts = count(lines);
  const bool by_user = interrupted();
  const bool complete = coverage == nullptr || coverage->complete() || by_user;
  const bool good = counts.failed == 0 && counts.malformed == 0 && complete;
  write_junit(options.junit, lines, coverage == nullptr ? std::vector<Coverage::Case>{} : coverage->cases(),
              options.paths);
  const Outcome outcome = outcome_of(good, by_user);
  write_json(options.json, result_json("verify", outcome, verify_json(lines, options.paths),
                                       verify_wall_clock(lines, seconds, options.paths)));
  for (const auto& line : lines)
    if (line.malformed()) print_error(line.outcome.message);
  return counts.malformed != 0 ? 2 : exit_code(outcome);
}

/// Behind the counts: `ran` of so many vectors were run before the user ended it.
void print_interrupt(std::size_t ran, std::size_t all) {
  if (interrupted())
    fmt::print("; {}: {} of {} were run", toned("interrupted", Tone::kBad), ran, counted(all, "vector"));
}

void add_malformed(std::vector<VerifyLine>& lines, const WantedVectors& wanted) {
  for (const auto& [vector, message] : wanted.malformed) {
    lines.push_back({&vector, {}});
    lines.back().outcome.malformed = true;
    lines.back().outcome.message = message;
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// On a device of this machine instead of simulated hosts.
int run_on_device(VerifyArguments& options, const WantedVectors& wanted) {
  const auto start = std::chrono::steady_clock::now();
  options.device.quiet = options.quiet;
  auto lines = verify_on_device(options.device, wanted.vectors);
  const auto ran = lines.size();
  add_malformed(lines, wanted);
  if (!options.quiet) print_clauses(lines);
  print_counts(lines, true);
  print_interrupt(ran, wanted.vectors.size());
  fmt::print("{}\n", interrupted() ? "" : fmt::format("; {} of higher grades left out", wanted.vectors.size() - ran));
  return end_verify(options, lines, seconds_since(start), nullptr);
}

/// Throws UsageError where an option shows one vector, and these are more or fewer.
void check_alone(const VerifyArguments& options, const WantedVectors& wanted) {
  const auto& files = options.world.options;
  const bool records = !(files.trace_path.empty() && files.capture_path.empty());
  if (wanted.vectors.size() == 1 && wanted.malformed.empty()) return;
  const bool alone = records || !files.timeline_path.empty() || options.report.wanted();
  if (alone && wanted.vectors.empty() && wanted.malformed.size() == 1)
    throw VectorError(wanted.malformed.front().second);
  if (records) throw UsageError("--trace and --pcap record one vector");
  if (!files.timeline_path.empty()) throw UsageError("--timeline shows one vector");
  if (options.report.wanted()) throw UsageError("--report shows one vector");
}

int run_verify_command(VerifyArguments& options) {
  check_writable(options.junit, "--junit");
  check_writable(options.json, "--json");
  options.report.check();
  check_files(options.world.options);
  if (options.check) return check_vectors(options);
  if ((options.list || options.grades || !options.grade.empty() || !options.device.names.empty()) && options.coverage)
    throw UsageError("--coverage needs the results of all vectors that it names");
  std::optional<Coverage> coverage;
  if (options.coverage) coverage.emplace(options.paths);
  const bool runs = !options.list && !options.grades;
  const auto wanted = wanted_vectors(options, coverage ? coverage->vectors() : options.paths, runs);
  const auto& vectors = wanted.vectors;
  if (options.grades) return print_grades(vectors);
  check_alone(options, wanted);
  if (options.list) {
    print_list(options, vectors);
    return 0;
  }
  if (!options.device.names.empty()) return run_on_device(options, wanted);
  std::vector<VerifyLine> lines;
  const auto start = std::chrono::steady_clock::now();
  WorldOptions world = options.world.draw().options;
  options.report.observe(world);
  if (options.jobs > 1) world.threads = 1;  // the cores have vectors of their own
  if (!vectors.empty()) {
    std::optional<Progress> progress;
    if (options.quiet) progress.emplace("verify", vectors.size());
    run_vectors(vectors, world, options.jobs, [&](std::size_t index, const VectorOutcome& outcome) {
      lines.push_back({&vectors[index], outcome});
      if (coverage) coverage->note(vectors[index].file, outcome.passed);
      if (progress) progress->update(lines.size());
      if ((options.quiet && outcome.passed) || outcome.malformed) return;
      fmt::print("{} {}{}\n", outcome.passed ? toned("pass", Tone::kGood) : toned("FAIL", Tone::kBad),
                 vectors[index].file.string(), outcome.passed ? "" : ": " + outcome.message);
      std::fflush(stdout);
    });
  }
  const std::size_t ran = lines.size();
  add_malformed(lines, wanted);
  if (coverage)
    coverage->print();
  else if (!options.quiet)
    print_clauses(lines);
  const double seconds = seconds_since(start);
  if (!options.quiet) print_cycles(lines, seconds);
  print_counts(lines);
  print_interrupt(ran, vectors.size());
  fmt::print("\n");
  if (options.report.wanted()) show_vector(options.report, lines.front());
  options.report.write();
  leave_failures(options, lines);
  return end_verify(options, lines, seconds, coverage ? &*coverage : nullptr);
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
  auto* command = add_command(tool, "verify", " (docs/vectors.md)");
  command
      ->add_option("paths", options->paths,
                   "Vector files, or folders of them; with --coverage folders with lists of statements (tests/vectors)")
      ->type_name("PATH");
  command->add_option("--junit", options->junit, "Write the results to this file as JUnit XML (docs/results.md)")
      ->type_name("FILE");
  add_json_option(*command, options->json);
  command->add_flag("--quiet", options->quiet, "Print vectors that fail, and how many passed, and nothing else");
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
      if (!options->coverage)
        throw CLI::ValidationError("verify", "name vector files, or folders of them: rnic verify tests/vectors");
      options->paths = {"tests/vectors"};
    }
    action = [options] { return run_verify_command(*options); };
  });
}

}  // namespace rnic::testbench
