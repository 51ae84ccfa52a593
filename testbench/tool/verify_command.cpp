#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

#include "testbench/tool/commands.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/world_options.hpp"
#include "testbench/verify/frame_check.hpp"
#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_runner.hpp"

namespace rnic::testbench {
namespace {

struct Options {
  std::vector<std::filesystem::path> paths;
  std::string junit;
  WorldOptions world;
};

struct Line {
  const Vector* vector;
  VectorOutcome outcome;
};

std::string xml(const std::string& text) {
  static const std::map<char, const char*> kEntities = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string out;
  for (const char c : text) {
    const auto it = kEntities.find(c);
    out += it == kEntities.end() ? std::string(1, c) : it->second;
  }
  return out;
}

void write_junit(const std::string& path, const std::vector<Line>& lines) {
  if (path.empty()) return;
  std::ofstream out(path);
  const auto failed = std::count_if(lines.begin(), lines.end(), [](const Line& line) { return !line.outcome.passed; });
  out << fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rnic verify\" tests=\"{}\" failures=\"{}\">\n", lines.size(), failed);
  for (const auto& line : lines) {
    const auto& v = *line.vector;
    out << fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"", xml(v.document + ", " + v.clause), xml(v.file.string()), static_cast<double>(line.outcome.simulated_ns) * 1e-9);
    out << (line.outcome.passed ? "/>\n" : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n", xml(line.outcome.message)));
  }
  out << "</testsuite>\n";
  out.close();
  if (!out) throw UsageError(fmt::format("--junit: cannot write '{}'", path));
}

void print_clauses(const std::vector<Line>& lines) {
  struct Count {
    int passed = 0, failed = 0;
  };
  std::map<std::string, std::map<std::string, Count>> documents;
  for (const auto& line : lines) {
    auto& count = documents[line.vector->document][line.vector->clause];
    ++(line.outcome.passed ? count.passed : count.failed);
  }
  for (const auto& [document, clauses] : documents) {
    fmt::print("\n{:<76}{:>8}{:>8}\n", document, "passed", "failed");
    for (const auto& [clause, count] : clauses) fmt::print("  {:<74}{:>8}{:>8}\n", clause, count.passed, count.failed);
  }
}

int run(const Options& options) {
  check_writable(options.junit, "--junit");
  const auto vectors = load_vectors(options.paths);
  World world(options.world);
  VectorRunner runner(world, options.world);
  std::vector<Line> lines;
  for (const auto& vector : vectors) {
    lines.push_back({&vector, vector.frame.empty() ? runner.run(vector) : check_frame(vector)});
    const auto& outcome = lines.back().outcome;
    fmt::print("{} {}{}\n", outcome.passed ? "pass" : "FAIL", vector.file.string(), outcome.passed ? "" : ": " + outcome.message);
    std::fflush(stdout);
  }
  print_clauses(lines);
  const auto passed = std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.outcome.passed; });
  fmt::print("\n{} passed, {} failed\n", passed, static_cast<std::ptrdiff_t>(lines.size()) - passed);
  write_junit(options.junit, lines);
  return passed == static_cast<std::ptrdiff_t>(lines.size()) ? 0 : 1;
}

}  // namespace

void add_verify_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<Options>();
  auto* command = tool.add_subcommand("verify", "Runs test vectors (docs/vectors.md) on the RTL");
  command->add_option("paths", options->paths, "Vector files, or folders of them")->required();
  command->add_option("--junit", options->junit, "Write the results to this file as JUnit XML");
  add_world_options(*command, options->world);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace rnic::testbench
