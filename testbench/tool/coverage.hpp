#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "testbench/verify/statement_list.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// Statements of documents beside what the vectors that hold them came to (`rnic verify --coverage`).
class Coverage {
 public:
  /// Reads the lists of statements of these folders. Throws VectorError.
  explicit Coverage(const std::vector<std::filesystem::path>& folders);

  /// Files of the vectors that statements name, each once, sorted.
  [[nodiscard]] std::vector<std::filesystem::path> vectors() const;
  /// What a vector came to. A vector that was not told of counts as failed.
  void note(const std::filesystem::path& vector, bool passed) { passed_[vector] = passed; }

  /// Document by document, section by section: each statement, what holds it, and the results; then the sums.
  void print() const;
  /// Every statement has a vector or a test, and all its vectors have passed.
  [[nodiscard]] bool complete() const;

  /// A statement as a test case.
  struct Case {
    std::string place, statement;
    std::string failure;  ///< Empty when it holds
  };
  [[nodiscard]] std::vector<Case> cases() const;

 private:
  struct Row {
    Statement statement;
    std::vector<std::filesystem::path> files;  ///< Of its vectors
  };
  [[nodiscard]] bool passed(const std::filesystem::path& file) const;
  /// Why it does not hold; empty when it does.
  [[nodiscard]] std::string failure(const Row& row) const;

  std::vector<Row> rows_;
  std::map<std::filesystem::path, bool> passed_;
};

}  // namespace rnic::testbench
