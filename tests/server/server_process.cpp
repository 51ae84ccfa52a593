#include "tests/server/server_process.hpp"

#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <stdexcept>

namespace rnic::test {

std::size_t descriptors_of(pid_t process) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

ServerProcess::ServerProcess(std::vector<std::string> arguments) {
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) throw std::runtime_error("no pipe for a server");
  const std::vector<std::string> own{"serve", "--dir", folder() + "/run", "--ready-fd", std::to_string(ready[1])};
  arguments.insert(arguments.begin(), own.begin(), own.end());
  process_ = start_tool(std::move(arguments), folder() + "/log", [&] { close(ready[0]); });
  close(ready[1]);
  char byte{};
  const ssize_t got = read(ready[0], &byte, 1);
  close(ready[0]);
  if (got != 1) throw std::runtime_error("the server did not begin, see " + folder() + "/log");
}

ServerProcess::~ServerProcess() {
  if (process_ > 0) end(SIGTERM);
}

int ServerProcess::end(int signal) {
  kill(process_, signal);
  const int code = exit_of(process_);
  process_ = -1;
  return code;
}

}  // namespace rnic::test
