#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "testbench/tool/coverage.hpp"
#include "testbench/tool/verify_line.hpp"

namespace rnic::testbench {

/// Writes the vectors as JUnit XML (docs/results.md), and behind them the statements that they hold; nothing if `path`
/// is empty. `paths` are those that led to the vectors. Throws UsageError.
void write_junit(const std::string& path, const std::vector<VerifyLine>& lines,
                 const std::vector<Coverage::Case>& cases, const std::vector<std::filesystem::path>& paths);

}  // namespace rnic::testbench
