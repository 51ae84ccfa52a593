#include "tests/server/server_process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>

namespace rnic::test {

ServerProcess::ServerProcess(const std::vector<std::string>& arguments) {
  std::string name = (std::filesystem::temp_directory_path() / "rnic_test_server.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for a server");
  folder_ = name;
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) throw std::runtime_error("no pipe for a server");
  std::vector<std::string> line{RNIC_TOOL, "serve", "--dir", folder_ + "/run", "--ready-fd", std::to_string(ready[1])};
  line.insert(line.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& argument : line) argv.push_back(argument.data());
  argv.push_back(nullptr);
  process_ = fork();
  if (process_ == 0) {
    close(ready[0]);
    const int log = open((folder_ + "/log").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ready[1]);
  char byte{};
  const ssize_t got = read(ready[0], &byte, 1);
  close(ready[0]);
  if (got != 1) throw std::runtime_error("the server did not begin, see " + folder_ + "/log");
}

ServerProcess::~ServerProcess() {
  if (process_ > 0) end(SIGTERM);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

int ServerProcess::end(int signal) {
  kill(process_, signal);
  const int code = exit_of(process_);
  process_ = -1;
  return code;
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
