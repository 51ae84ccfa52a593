#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "testbench/coverage/reached_points.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/coverage_page.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/result_json.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {
namespace {

constexpr const char* kExcludedPoints = "tests/coverage/excluded.toml";

struct CoverageArguments {
  std::vector<std::filesystem::path> folders;
  std::string excluded, closed, write_closed, json, html;
  std::size_t holes = 10;
};

void print_sums(const char* column, const std::map<std::string, ReachedPoints::Sum>& sums) {
  const auto line = [](const std::string& name, const ReachedPoints::Sum& sum) {
    fmt::print("{:<64}{:>8}{:>10}{:>9}{:>15}{:>7}\n", name, sum.points, sum.excluded, sum.reached, sum.in_unit_tests,
               sum.holes());
  };
  fmt::print("{:<64}{:>8}{:>10}{:>9}{:>15}{:>7}\n", column, "points", "excluded", "reached", "in unit tests", "holes");
  ReachedPoints::Sum all;
  for (const auto& [name, sum] : sums) {
    line(name, sum);
    all.add(sum);
  }
  line("all", all);
  fmt::print("\n");
}

void print_holes(const ReachedPoints& reached, std::size_t most) {
  std::map<std::string, std::vector<std::string>> holes;
  for (const auto& point : reached.points())
    if (!point.reached && point.excluded.empty())
      holes[point.rtl ? point.place : clause_of(point)].push_back(point.name);
  if (!holes.empty()) fmt::print("Holes\n");
  for (const auto& [place, names] : holes) {
    fmt::print("  {}\n", place);
    for (std::size_t i = 0; i < names.size() && i < most; ++i) fmt::print("    {}\n", names[i]);
    if (names.size() > most) fmt::print("    and {} more (--holes {})\n", names.size() - most, names.size());
  }
}

void write_coverage_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw UsageError(fmt::format("cannot write '{}'", path));
}

nlohmann::ordered_json sums_json(const std::map<std::string, ReachedPoints::Sum>& sums) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, sum] : sums)
    json[name] = {{"points", sum.points},
                  {"excluded", sum.excluded},
                  {"reached", sum.reached},
                  {"in_unit_tests", sum.in_unit_tests},
                  {"holes", sum.holes()}};
  return json;
}

nlohmann::ordered_json coverage_json(const ReachedPoints& reached) {
  ReachedPoints::Sum all;
  auto holes = nlohmann::ordered_json::array();
  for (const auto& point : reached.points()) {
    all.add(point);
    if (!point.reached && point.excluded.empty()) holes.push_back(point.name);
  }
  return {{"points", all.points},
          {"excluded", all.excluded},
          {"reached", all.reached},
          {"in_unit_tests", all.in_unit_tests},
          {"holes", all.holes()},
          {"rtl", reached.has_rtl()},
          {"by_clause", sums_json(reached.by_clause())},
          {"hole", holes},
          {"by_block", sums_json(reached.by_block())}};
}

int run_coverage_command(const CoverageArguments& options) {
  check_writable(options.json, "--json");
  check_writable(options.html, "--html");
  check_writable(options.write_closed, "--write-closed");
  try {
    ReachedPoints reached(options.folders);
    if (!options.excluded.empty() || std::filesystem::exists(kExcludedPoints))
      reached.exclude(options.excluded.empty() ? kExcludedPoints : options.excluded);
    print_sums("group (clause: its subject)", reached.by_clause());
    if (reached.has_rtl()) print_sums("block", reached.by_block());
    print_holes(reached, options.holes);
    if (!options.html.empty()) write_coverage_text(options.html, coverage_page(reached));
    if (!options.write_closed.empty()) {
      std::string names;
      for (const auto& point : reached.points())
        if (point.reached) names += point.name + '\n';
      write_coverage_text(options.write_closed, names);
    }
    const auto impossible = reached.impossible();
    for (const auto& name : impossible)
      print_error(fmt::format("{} is reached, and excluded as impossible: the reason is wrong, or the NIC is", name));
    std::vector<std::string> opened;
    if (!options.closed.empty()) opened = reached.opened(options.closed);
    for (const auto& name : opened)
      print_error(
          fmt::format("a closed point is open: {}: no run reaches what {} lists as reached", name, options.closed));
    const bool good = impossible.empty() && opened.empty();
    write_json(options.json,
               result_json("coverage", good ? Outcome::kPassed : Outcome::kFailed, coverage_json(reached)));
    return good ? 0 : 1;
  } catch (const CoverageError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

void add_coverage_command(CLI::App& tool, std::function<int()>& action) {
  auto options = std::make_shared<CoverageArguments>();
  auto* command = add_command(tool, "coverage", ", and which not, by clause and by block (RNIC_COVERAGE=FOLDER)");
  command->add_option("folders", options->folders, "Folders that RNIC_COVERAGE named; they are merged")
      ->required()
      ->type_name("FOLDER");
  command
      ->add_option("--excluded", options->excluded,
                   fmt::format("Points that cannot be, each with a reason; {} when it is there", kExcludedPoints))
      ->type_name("FILE");
  command->add_option("--closed", options->closed, "Points, a line each, that must be reached")->type_name("FILE");
  command->add_option("--write-closed", options->write_closed, "Write the points that are reached, a line each")
      ->type_name("FILE");
  command->add_option("--holes", options->holes, "Holes to print of each clause and block")->capture_default_str();
  add_json_option(*command, options->json);
  command->add_option("--html", options->html, "Write a page for a browser to this file")->type_name("FILE");
  command->callback([options, &action] { action = [options] { return run_coverage_command(*options); }; });
}

}  // namespace rnic::testbench
