#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "testbench/tool/verify_line.hpp"

namespace rnic::testbench {

/// Passed and failed vectors of each clause, by document.
void print_clauses(const std::vector<VerifyLine>& lines);
/// Clock cycles of a NIC that the vectors took together, and for what; `seconds` of the wall clock.
void print_cycles(const std::vector<VerifyLine>& lines, double seconds);
/// "12 passed, 1 failed" and the like; before it, of many lines, the names of those that failed.
void print_counts(const std::vector<VerifyLine>& lines, bool on_device = false);

/// "results" of `rnic verify` (docs/results.md). `paths` are those that led to the vectors.
[[nodiscard]] nlohmann::ordered_json verify_json(const std::vector<VerifyLine>& lines,
                                                 const std::vector<std::filesystem::path>& paths);
/// "wall_clock" of it.
[[nodiscard]] nlohmann::ordered_json verify_wall_clock(const std::vector<VerifyLine>& lines, double seconds,
                                                       const std::vector<std::filesystem::path>& paths);

}  // namespace rnic::testbench
