#pragma once

#include <string>
#include <vector>

#include "testbench/tool/coverage.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// A vector, and what came of it.
struct VerifyLine {
  const Vector* vector;
  VectorOutcome outcome;
  bool skipped = false;  ///< A device lacks what it is about: outcome.message says what
};

/// Writes the vectors as JUnit XML, and behind them the statements that they hold; nothing if `path` is empty. Throws
/// UsageError.
void write_junit(const std::string& path, const std::vector<VerifyLine>& lines,
                 const std::vector<Coverage::Case>& cases);

}  // namespace rnic::testbench
