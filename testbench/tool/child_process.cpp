#include "testbench/tool/child_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

namespace rnic::testbench {
namespace {

/// In the child: what does not come back has worked.
void become(const ChildOptions& options, char* const arguments[]) {
  if (options.own_group) {
    setpgid(0, 0);
  }
  if (options.own_group || options.ends_with_us) prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int one : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) signal(one, SIG_DFL);
  if (options.output >= 0) dup2(options.output, STDOUT_FILENO);
  if (options.errors >= 0) dup2(options.errors, STDERR_FILENO);
  if (options.keeps >= 0) fcntl(options.keeps, F_SETFD, 0);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  execvp(arguments[0], arguments);
}

}  // namespace

Pipe::Pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  read_end = remote::Descriptor(ends[0]);
  write_end = remote::Descriptor(ends[1]);
}

ChildProcess::ChildProcess(const ChildOptions& options) {
  std::vector<std::string> line = options.command;
  std::vector<char*> arguments;
  for (auto& one : line) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  // Closed by the program that begins; what comes is why there is none.
  Pipe failure;
  process_ = fork();
  if (process_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (process_ == 0) {
    become(options, arguments.data());
    const int error = errno;
    static_cast<void>(write(failure.write_end.get(), &error, sizeof error) == 0);
    _exit(127);
  }
  failure.write_end = {};
  int error = 0;
  if (read(failure.read_end.get(), &error, sizeof error) == sizeof error) {
    wait();
    throw std::system_error(error, std::generic_category(), options.command.front());
  }
}

ChildProcess::~ChildProcess() {
  if (process_ < 0 || code_) return;
  signal(SIGKILL);
  wait();
}

std::optional<int> ChildProcess::look(bool wait) {
  while (!code_) {
    int status = 0;
    const pid_t got = waitpid(process_, &status, wait ? 0 : WNOHANG);
    if (got < 0 && errno == EINTR) continue;
    if (got != process_) break;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code_;
}

int ChildProcess::wait() { return look(true).value_or(1); }
std::optional<int> ChildProcess::ended() { return look(false); }

void ChildProcess::signal(int number) {
  if (process_ > 0 && !code_) kill(process_, number);
}

}  // namespace rnic::testbench
