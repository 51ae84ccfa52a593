#include "testbench/verify/statement_list.hpp"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <tuple>

#include "testbench/verify/vector_reader.hpp"

namespace rnic::testbench {
namespace {

std::vector<std::string> read_names(VectorReader& from, const char* key) {
  const auto* value = from.find(key);
  if (!value) return {};
  std::vector<std::string> names;
  for (const auto& one : from.list(*value, key)) {
    if (!one.is_string()) from.fail(fmt::format("\"{}\" must be a list of strings", key));
    names.push_back(one.get<std::string>());
  }
  return names;
}

Statement read_statement(VectorReader from, const std::string& document) {
  Statement to{.document = document,
               .section = from.text("section"),
               .text = from.text("statement"),
               .vectors = read_names(from, "vectors"),
               .tests = read_names(from, "tests"),
               .missing = from.find("not_yet") ? from.text("not_yet") : ""};
  // For the page that is made of the list.
  static_cast<void>(from.find("points"));
  static_cast<void>(from.find("note"));
  if (to.vectors.empty() && to.tests.empty() && to.missing.empty())
    from.fail("neither \"vectors\" nor \"tests\" nor \"not_yet\"");
  from.finish();
  return to;
}

}  // namespace

std::vector<Statement> load_statements(const std::filesystem::path& folder) {
  const auto file = folder / kStatementFile;
  std::ifstream in(file);
  if (!in) throw VectorError(fmt::format("{}: cannot be read", file.string()));
  nlohmann::json root;
  try {
    root = nlohmann::json::parse(in, nullptr, true, true);
  } catch (const nlohmann::json::parse_error& error) {
    throw VectorError(fmt::format("{}: {}", file.string(), error.what()));
  }
  if (!root.is_array()) throw VectorError(fmt::format("{}: must be a list of documents", file.string()));
  std::vector<Statement> statements;
  std::set<std::tuple<std::string, std::string, std::string>> known;
  for (const auto& one : root) {
    VectorReader document(one, file.string());
    const auto name = document.text("document");
    const auto& rows = document.list(document.need("statements"), "statements");
    document.finish();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      statements.push_back(read_statement({rows[i], fmt::format("{}, {}, {}", file.string(), name, i + 1)}, name));
      const auto& last = statements.back();
      if (!known.emplace(last.document, last.section, last.text).second)
        throw VectorError(
            fmt::format("{}: {}, {}: \"{}\" stands here twice", file.string(), name, last.section, last.text));
    }
  }
  return statements;
}

}  // namespace rnic::testbench
