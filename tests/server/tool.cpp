#include "tests/server/tool.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace rnic::test {

Outcome Tool::run(std::vector<std::string> arguments) {
  const std::string log = folder() + "/output";
  const pid_t child = start_tool(std::move(arguments), log, [&] {
    setenv("XDG_RUNTIME_DIR", folder().c_str(), 1);
    setenv("TMPDIR", folder().c_str(), 1);
    std::filesystem::current_path(folder());
  });
  const int code = exit_of(child);
  std::ifstream in(log);
  std::ostringstream text;
  text << in.rdbuf();
  return {code, text.str()};
}

std::vector<std::string> Tool::left() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().filename() != "output") names.push_back(entry.path().filename().string());
  }
  return names;
}

}  // namespace rnic::test
