#include "testbench/input_files.hpp"

#include <fstream>
#include <iterator>
#include <system_error>

namespace rnic::testbench {

std::optional<std::string> InputFiles::read(const std::filesystem::path& file) {
  if (closed_) {
    const auto found = texts_.find(file.string());
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }
  std::error_code error;
  std::ifstream in(file, std::ios::binary);
  if (std::filesystem::is_directory(file, error) || !in) return {};
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return {};
  return texts_.insert_or_assign(file.string(), std::move(text)).first->second;
}

}  // namespace rnic::testbench
