#include "testbench/verify/clause_list.hpp"

#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <set>
#include <utility>

#include "testbench/verify/vector_reader.hpp"

namespace rnic::testbench {
namespace {

/// Words of letters, digits, '.' and '-' outside parentheses; a '.' at the end is none of the word.
std::set<std::string> words(const std::string& text) {
  std::set<std::string> found;
  std::string word;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    const bool part = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    if (part && depth == 0) {
      word += c;
      continue;
    }
    while (!word.empty() && word.back() == '.') word.pop_back();
    if (!word.empty()) found.insert(std::exchange(word, {}));
    depth += (c == '(') - (c == ')');
  }
  return found;
}

}  // namespace

std::vector<Clause> load_clauses(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw VectorError(fmt::format("{}: cannot be read", file.string()));
  nlohmann::json root;
  try {
    root = nlohmann::json::parse(in, nullptr, true, true);
  } catch (const nlohmann::json::parse_error& error) {
    throw VectorError(fmt::format("{}: {}", file.string(), error.what()));
  }
  std::vector<Clause> clauses;
  std::set<std::pair<std::string, std::string>> known;
  VectorReader documents(root, file.string());
  for (const auto& [document, list] : root.items()) {
    const auto& entries = documents.list(documents.need(document.c_str()), document.c_str());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      VectorReader entry = documents.element(entries[i], document.c_str(), i);
      clauses.push_back({document, entry.text("clause"), entry.text("about")});
      if (!known.emplace(document, clauses.back().number).second)
        entry.fail(fmt::format("clause \"{}\" stands here twice", clauses.back().number));
      entry.finish();
    }
  }
  return clauses;
}

bool covers(const Vector& vector, const Clause& clause) {
  return vector.document == clause.document && words(vector.clause).contains(clause.number);
}

}  // namespace rnic::testbench
