#include "testbench/tool/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rnic::testbench {

Coverage::Coverage(const std::vector<std::filesystem::path>& folders) {
  for (const auto& folder : folders) {
    for (auto& statement : load_statements(folder)) {
      Row row{std::move(statement), {}};
      for (const auto& name : row.statement.vectors) row.files.push_back(folder / (name + ".json"));
      rows_.push_back(std::move(row));
    }
  }
}

std::vector<std::filesystem::path> Coverage::vectors() const {
  std::set<std::filesystem::path> files;
  for (const auto& row : rows_) files.insert(row.files.begin(), row.files.end());
  return {files.begin(), files.end()};
}

bool Coverage::passed(const std::filesystem::path& file) const {
  const auto it = passed_.find(file);
  return it != passed_.end() && it->second;
}

std::string Coverage::failure(const Row& row) const {
  std::string why = row.statement.missing.empty() ? "" : "not yet: " + row.statement.missing;
  for (std::size_t i = 0; i < row.files.size(); ++i) {
    if (!passed(row.files[i])) why += (why.empty() ? "failed: " : ", ") + row.statement.vectors[i];
  }
  return why;
}

void Coverage::print() const {
  const Statement* last = nullptr;
  for (const auto& row : rows_) {
    const auto& statement = row.statement;
    const bool other_document = last == nullptr || last->document != statement.document;
    if (other_document) fmt::print("\n{}\n", statement.document);
    if (other_document || last->section != statement.section) fmt::print("\n  {}\n", statement.section);
    last = &statement;
    fmt::print("    {}\n", statement.text);
    for (std::size_t i = 0; i < row.files.size(); ++i)
      fmt::print("      {} {}\n", passed(row.files[i]) ? "pass" : "FAIL", statement.vectors[i]);
    for (const auto& test : statement.tests)
      fmt::print("      {} {}\n", row.files.empty() ? "held by a test:" : "test", test);
    if (!statement.missing.empty()) fmt::print("      NOTHING YET: {}\n", statement.missing);
  }
  const auto count = [&](auto&& is) { return std::count_if(rows_.begin(), rows_.end(), is); };
  const auto held = count([&](const Row& row) { return failure(row).empty() && !row.files.empty(); });
  const auto by_tests = count([&](const Row& row) { return failure(row).empty() && row.files.empty(); });
  const auto missing = count([](const Row& row) { return !row.statement.missing.empty(); });
  fmt::print("\n{} statements: {} held by vectors, {} by tests alone, {} not yet, {} with a vector that failed\n",
             rows_.size(), held, by_tests, missing,
             static_cast<std::ptrdiff_t>(rows_.size()) - held - by_tests - missing);
}

bool Coverage::complete() const {
  return std::all_of(rows_.begin(), rows_.end(), [this](const Row& row) { return failure(row).empty(); });
}

std::vector<Coverage::Case> Coverage::cases() const {
  std::vector<Case> cases;
  for (const auto& row : rows_)
    cases.push_back({row.statement.document + ", " + row.statement.section, row.statement.text, failure(row)});
  return cases;
}

}  // namespace rnic::testbench
