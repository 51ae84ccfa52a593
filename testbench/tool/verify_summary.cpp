#include "testbench/tool/verify_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "testbench/tool/progress.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

std::uint64_t cycles_of(const std::vector<VerifyLine>& lines) {
  std::uint64_t all = 0;
  for (const auto& line : lines) all += line.outcome.cycles;
  return all;
}

const char* result_of(const VerifyLine& line) {
  return line.skipped ? "skipped" : line.malformed() ? "malformed" : line.failed() ? "failed" : "passed";
}

}  // namespace

void print_clauses(const std::vector<VerifyLine>& lines) {
  struct Count {
    int passed = 0, failed = 0;
  };
  std::map<std::string, std::map<std::string, Count>> documents;
  for (const auto& line : lines) {
    if (line.skipped || line.malformed()) continue;
    auto& count = documents[line.vector->document][line.vector->clause];
    ++(line.outcome.passed ? count.passed : count.failed);
  }
  for (const auto& [document, clauses] : documents) {
    fmt::print("\n{:<76}{:>8}{:>8}\n", document, "passed", "failed");
    for (const auto& [clause, count] : clauses) fmt::print("  {:<74}{:>8}{:>8}\n", clause, count.passed, count.failed);
  }
}

void print_cycles(const std::vector<VerifyLine>& lines, double seconds) {
  constexpr std::uint64_t kNsPerCycle = 4;
  std::uint64_t set_up = 0, steps = 0;
  const std::uint64_t all = cycles_of(lines);
  for (const auto& line : lines) {
    set_up += line.outcome.set_up_ns / kNsPerCycle;
    steps += line.outcome.simulated_ns / kNsPerCycle;
  }
  fmt::print("\n{:<24}{:>14}\n", "cycles", all);
  fmt::print("  {:<22}{:>14}\n  {:<22}{:>14}\n  {:<22}{:>14}\n", "set-up", set_up, "steps", steps, "rest, tear-down",
             all - std::min(all, set_up + steps));
  fmt::print("{:<24}{:>14.0f}   ({} min:s)\n", "cycles per second", per_second(all, seconds),
             clock_text(static_cast<std::uint64_t>(seconds + 0.5)));
}

void print_counts(const std::vector<VerifyLine>& lines, bool on_device) {
  const auto counts = count(lines);
  constexpr std::size_t kScreen = 20;
  if (counts.failed != 0 && lines.size() > kScreen) {
    fmt::print("\nfailed:\n");
    for (const auto& line : lines)
      if (line.failed()) fmt::print("  {}\n", line.vector->file.string());
  }
  const std::string failed = fmt::format("{} failed", counts.failed);
  fmt::print("\n{} passed, {}", counts.passed, counts.failed == 0 ? failed : toned(failed, Tone::kBad));
  if (on_device || counts.skipped != 0) fmt::print(", {} skipped", counts.skipped);
  if (counts.malformed != 0) fmt::print(", {}", toned(fmt::format("{} malformed", counts.malformed), Tone::kBad));
}

nlohmann::ordered_json verify_json(const std::vector<VerifyLine>& lines,
                                   const std::vector<std::filesystem::path>& paths) {
  const auto counts = count(lines);
  auto vectors = nlohmann::ordered_json::array();
  for (const auto& line : lines) {
    nlohmann::ordered_json one{{"name", vector_name(line.vector->file, paths)}, {"result", result_of(line)}};
    if (!line.malformed()) {
      one.update({{"document", line.vector->document},
                  {"clause", line.vector->clause},
                  {"simulated_ns", line.outcome.simulated_ns},
                  {"set_up_ns", line.outcome.set_up_ns},
                  {"cycles", line.outcome.cycles}});
    }
    if (!line.outcome.message.empty()) one["message"] = line.outcome.message;
    if (!line.evidence.empty()) one["evidence"] = line.evidence.string();
    vectors.push_back(std::move(one));
  }
  return {{"passed", counts.passed},       {"failed", counts.failed},    {"skipped", counts.skipped},
          {"malformed", counts.malformed}, {"cycles", cycles_of(lines)}, {"vectors", std::move(vectors)}};
}

nlohmann::ordered_json verify_wall_clock(const std::vector<VerifyLine>& lines, double seconds,
                                         const std::vector<std::filesystem::path>& paths) {
  auto each = nlohmann::ordered_json::object();
  for (const auto& line : lines) each[vector_name(line.vector->file, paths)] = line.outcome.wall_seconds;
  return {{"seconds", seconds},
          {"simulated_cycles_per_second", per_second(cycles_of(lines), seconds)},
          {"vector_seconds", std::move(each)}};
}

}  // namespace rnic::testbench
