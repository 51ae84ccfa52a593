#include "testbench/tool/verify_line.hpp"

#include "testbench/verify/statement_list.hpp"

namespace rnic::testbench {
namespace {

std::string without_suffix(const std::filesystem::path& path) {
  return (path.parent_path() / path.stem()).generic_string();
}

}  // namespace

VerifyCounts count(const std::vector<VerifyLine>& lines) {
  VerifyCounts counts;
  for (const auto& line : lines)
    ++(line.skipped       ? counts.skipped
       : line.malformed() ? counts.malformed
       : line.failed()    ? counts.failed
                          : counts.passed);
  return counts;
}

std::string vector_name(const std::filesystem::path& file, const std::vector<std::filesystem::path>& paths) {
  namespace fs = std::filesystem;
  const fs::path whole = fs::absolute(file).lexically_normal();
  for (fs::path folder = whole.parent_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / kClauseFile) || fs::exists(folder / kStatementFile))
      return without_suffix(whole.lexically_relative(folder));
    if (folder == folder.root_path()) break;
  }
  for (const auto& path : paths) {
    const fs::path below = whole.lexically_relative(fs::absolute(path).lexically_normal());
    if (!below.empty() && below != "." && *below.begin() != "..") return without_suffix(below);
  }
  return file.stem().string();
}

}  // namespace rnic::testbench
