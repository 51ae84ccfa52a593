#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rnic::testbench {

/// The list of statements in a folder of vectors; it is no vector.
inline constexpr const char* kStatementFile = "statements.json";

/// What a document says at one place, and what fails when it is no longer so (docs/vectors.md, Statements and what
/// holds them).
struct Statement {
  std::string document, section;
  std::string text;                  ///< In our words
  std::vector<std::string> vectors;  ///< "folder/name", below the folder of the list
  std::vector<std::string> tests;    ///< "folder/name: title", below tests
  std::string missing;               ///< What it waits for, if nothing holds it yet
};

/// Reads the list of a folder, in its order. Throws VectorError, also for a statement that stands in it twice, and for
/// one that is neither held by anything nor said to be missing.
std::vector<Statement> load_statements(const std::filesystem::path& folder);

}  // namespace rnic::testbench
