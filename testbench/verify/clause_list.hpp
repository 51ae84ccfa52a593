#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// A clause of a document that vectors should cover (docs/vectors.md, The list of clauses).
struct Clause {
  std::string document;
  std::string number;   ///< "9.7.5.1.2", "C9-88", "26"
  std::string subject;  ///< What it asks for, in our words
};

/// Reads a list of clauses. Throws VectorError, also for a clause that stands in it twice.
std::vector<Clause> load_clauses(const std::filesystem::path& file);

/// The vector names the clause: the same document, and the number as a word of its own outside parentheses.
[[nodiscard]] bool covers(const Vector& vector, const Clause& clause);

}  // namespace rnic::testbench
