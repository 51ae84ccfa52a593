#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/server/tool_process.hpp"

namespace rnic::test {

/// How many descriptors a process has.
[[nodiscard]] std::size_t descriptors_of(pid_t process);

/// `rnic serve` as a process of its own, in a folder of its own that goes with it.
class ServerProcess {
 public:
  /// Returns when processes can come to it. Throws std::runtime_error.
  explicit ServerProcess(std::vector<std::string> arguments = {});
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  [[nodiscard]] std::string socket(unsigned host) const { return folder() + "/run/host" + std::to_string(host); }
  [[nodiscard]] pid_t process() const { return process_; }

  /// Sends the signal and waits for the end; returns the exit code, or 128 and the signal that ended it.
  int end(int signal);

 private:
  OwnFolder folder_;
  pid_t process_ = -1;
};

}  // namespace rnic::test
