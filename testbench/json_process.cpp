#include "testbench/json_process.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

namespace rnic::testbench {

using nlohmann::json;

bool JsonChannel::send(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  for (std::string_view left = text; !left.empty();) {
    const ssize_t count = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::optional<json> JsonChannel::receive() {
  std::array<char, 65536> block;
  std::size_t end = read_.find('\n');
  while (end == std::string::npos) {
    const ssize_t count = read(socket_, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    const std::size_t before = read_.size();
    read_.append(block.data(), static_cast<std::size_t>(count));
    end = read_.find('\n', before);
  }
  json value = json::parse(read_.begin(), read_.begin() + static_cast<std::ptrdiff_t>(end));
  read_.erase(0, end + 1);
  return value;
}

void JsonChannel::open(int socket) {
  close();
  socket_ = socket;
}

void JsonChannel::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  read_.clear();
}

void JsonProcess::start() {
  if (process_ >= 0) return;
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  std::fflush(nullptr);
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    int code = 0;
    try {
      JsonChannel parent(ends[1]);
      work_(parent);
    } catch (const std::exception&) {
      code = 1;
    }
    _exit(code);  // nothing of the parent's may be flushed or torn down twice
  }
  const int error = errno;
  ::close(ends[1]);
  child_.open(ends[0]);
  if (process_ < 0) throw std::system_error(error, std::generic_category(), "fork");
}

std::string JsonProcess::wait() {
  if (process_ < 0) return {};
  child_.close();
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return WIFSIGNALED(status) ? fmt::format("was ended by a signal ({})", strsignal(WTERMSIG(status)))
                             : fmt::format("has ended with exit code {}", WEXITSTATUS(status));
}

void JsonProcess::stop() {
  // Its channel does not end by being closed here: children that were started later have it too.
  if (process_ >= 0) kill(process_, SIGKILL);
  wait();
}

}  // namespace rnic::testbench
