#include "tests/server/tool_process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>

namespace rnic::test {

OwnFolder::OwnFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "rnic_test_server.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for a test");
  path_ = name;
}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string tool_path() {
  const char* const named = std::getenv("RNIC_TOOL");
  return named != nullptr ? named : RNIC_TOOL;
}

pid_t start_tool(std::vector<std::string> arguments, const std::string& log, const std::function<void()>& prepare) {
  arguments.insert(arguments.begin(), tool_path());
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return in_child([&] {
    const int to = open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    if (prepare) prepare();
    execv(argv[0], argv.data());
    return 126;
  });
}

pid_t in_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
  }
  _exit(code);
}

int exit_of(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rnic::test
