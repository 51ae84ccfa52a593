#pragma once

#include <catch2/catch.hpp>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/server/tool.hpp"

/// Programs of NetworkDirect run by the tool, and the tables that they print.
namespace rnic::test {

using Words = std::vector<std::string>;

inline Words operator+(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Ways to ask for the end of an overlapped operation without waiting: `nd2_program polls`.
inline const Words kPolls{
    "GetQueuedCompletionStatus", "HasOverlappedIoCompleted", "YieldProcessor",     "SwitchToThread", "Sleep",
    "WaitForSingleObject",       "WaitForMultipleObjects",   "GetOverlappedResult"};

/// Both sides of a program with the same options.
inline Words pair_of(const std::string& program, const Words& options) {
  Words words;
  for (const char* const role : {"server", "client"}) words = words + Words{"--", program, role, "10.0.0.1"} + options;
  return words;
}

inline Outcome run(const Words& words) {
  Tool tool;
  return tool.run(words);
}

/// The tool with these words, which comes to a good end, with nobody left behind. What it printed.
inline std::string passes(const Words& words) {
  const auto outcome = run(words);
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK_FALSE(contains(outcome.output, "stays"));
  return outcome.output;
}

/// The numbers of a table's lines behind the words of its head, from column `first` on, also behind a program's name.
inline std::vector<std::vector<double>> rows_of(const std::string& output, const std::string& head,
                                                unsigned first = 0) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(output);
  std::string line;
  while (std::getline(lines, line) && !contains(line, head)) continue;
  while (std::getline(lines, line)) {
    if (line.rfind("rnic", 0) == 0) break;  // the tool's own
    std::istringstream words(contains(line, "| ") ? line.substr(line.find("| ") + 2) : line);
    std::vector<double> row;
    std::string word;
    for (unsigned i = 0; words >> word; ++i)
      if (i >= first) row.push_back(std::strtod(word.c_str(), nullptr));
    rows.push_back(row);
  }
  return rows;
}

/// The only line of a table, with so many numbers.
inline std::vector<double> row_of(const std::string& output, const std::string& head, std::size_t numbers,
                                  unsigned first = 0) {
  INFO(output);
  const auto rows = rows_of(output, head, first);
  REQUIRE(rows.size() >= 1);
  REQUIRE(rows[0].size() == numbers);
  return rows[0];
}

}  // namespace rnic::test
