#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace rnic::test {

/// `rnic serve` as a process of its own, in a folder of its own that goes with it.
class ServerProcess {
 public:
  /// Returns when processes can come to it. Throws std::runtime_error.
  explicit ServerProcess(const std::vector<std::string>& arguments = {});
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string socket(unsigned host) const { return folder_ + "/run/host" + std::to_string(host); }
  [[nodiscard]] pid_t process() const { return process_; }

  /// Sends the signal and waits for the end; returns the exit code, or 128 and the signal that ended it.
  int end(int signal);

 private:
  std::string folder_;
  pid_t process_ = -1;
};

/// Runs `body` in a child process and gives its number; the child ends with what body returns, and 99 if it throws.
pid_t in_child(const std::function<int()>& body);
/// Waits for it: the exit code, or 128 and the signal that ended it.
int exit_of(pid_t process);

}  // namespace rnic::test
