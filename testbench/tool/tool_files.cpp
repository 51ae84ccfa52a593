#include "testbench/tool/tool_files.hpp"

namespace rnic::testbench {

std::filesystem::path tool_prefix() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return folder.filename() == "bin" ? folder.parent_path() : folder.parent_path().parent_path();
}

}  // namespace rnic::testbench
