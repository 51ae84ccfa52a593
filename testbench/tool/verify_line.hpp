#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// A vector, and its result.
struct VerifyLine {
  const Vector* vector;  ///< Of a malformed file only its name
  VectorOutcome outcome;
  bool skipped = false;  ///< A device lacks what it is about: outcome.message says what
  /// Where capture, waves, log and command of its failure are; empty: nowhere.
  std::filesystem::path evidence{};

  [[nodiscard]] bool malformed() const { return outcome.malformed; }
  [[nodiscard]] bool failed() const { return !outcome.passed && !skipped && !malformed(); }
};

struct VerifyCounts {
  std::size_t passed = 0, failed = 0, skipped = 0, malformed = 0;
};
[[nodiscard]] VerifyCounts count(const std::vector<VerifyLine>& lines);

/// "flush/empty": what a vector is called wherever the checkout is. It is the path below the folder of the collection
/// (which has a clauses.json or a statements.json); without one, below that of `paths` which leads to it.
[[nodiscard]] std::string vector_name(const std::filesystem::path& file,
                                      const std::vector<std::filesystem::path>& paths);

}  // namespace rnic::testbench
