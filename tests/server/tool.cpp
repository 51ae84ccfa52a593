#include "tests/server/tool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/server/server_process.hpp"

namespace rnic::test {

Tool::Tool() {
  std::string name = (std::filesystem::temp_directory_path() / "rnic_test_tool.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder");
  folder_ = name;
}

Tool::~Tool() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Outcome Tool::run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RNIC_TOOL);
  const std::string log = folder_ + "/output";
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int to = open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    setenv("TMPDIR", folder_.c_str(), 1);
    if (chdir(folder_.c_str()) == 0) execv(argv[0], argv.data());
    _exit(126);
  }
  const int code = exit_of(child);
  std::ifstream in(log);
  std::ostringstream text;
  text << in.rdbuf();
  return {code, text.str()};
}

std::vector<std::string> Tool::left() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().filename() != "output") names.push_back(entry.path().filename().string());
  }
  return names;
}

}  // namespace rnic::test
