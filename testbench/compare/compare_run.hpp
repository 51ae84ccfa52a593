#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "testbench/compare/differences.hpp"
#include "testbench/compare/program_maker.hpp"
#include "testbench/compare/program_runner.hpp"

namespace rnic::testbench {

struct CompareOptions {
  std::uint64_t operations = 10'000;
  std::uint64_t seed = 1;  ///< Of the first program; the others have the seeds behind it
  unsigned jobs = 1;       ///< Programs at a time, each in two processes
  ProgramLimits limits;
  std::array<WorldOptions, 2> worlds;                    ///< Those that are compared
  PlantedDifference planted = PlantedDifference::kNone;  ///< In the first world
  std::size_t most_differences = 5;                      ///< Then it ends
  bool shrinks = true;                                   ///< Each difference, to the shortest program that shows it
};

/// A difference, in the shortest program that shows it, if they are shrunk.
struct FoundDifference {
  std::uint64_t seed = 0;
  std::size_t operations = 0;  ///< Of that program
  Difference found;            ///< In the program as it was drawn
  Difference difference;       ///< In the shortest one
  nlohmann::ordered_json vector;
};

struct CompareReport {
  std::uint64_t programs = 0, operations = 0, completions = 0, packets = 0;
  std::map<std::string, std::uint64_t> drawn;     ///< Steps by kind
  std::map<std::string, std::uint64_t> outcomes;  ///< Completions by status, of the second world
  std::map<std::string, std::uint64_t>
      failures;  ///< What ended otherwise than a program means, by sort, in both worlds
  std::vector<FoundDifference> differences;
  bool interrupted = false;  ///< By the user: programs that had begun have come to their end
};

/// Runs random programs on two worlds, and holds what has come of them against each other. A world runs in a process of
/// its own, because SystemC elaborates once a process; one that ends is started anew. An interrupt (interrupt.hpp) ends
/// it with the programs that have begun, without shrinking. `progress` is called with the operations done. Throws
/// std::system_error when there can be no process.
[[nodiscard]] CompareReport run_compare(const CompareOptions& options,
                                        const std::function<void(std::uint64_t)>& progress = {});

}  // namespace rnic::testbench
