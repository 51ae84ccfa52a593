#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace rnic::test {

/// A folder for a test, which goes with this.
class OwnFolder {
 public:
  /// Throws std::runtime_error.
  OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The tool: that of this build, or the one that RNIC_TOOL in the environment names.
[[nodiscard]] std::string tool_path();
/// Runs it in a process of its own, of which it gives the number. What it says goes to the file `log`; `prepare` is
/// called in the child before.
pid_t start_tool(std::vector<std::string> arguments, const std::string& log, const std::function<void()>& prepare = {});

/// Runs `body` in a child process and gives its number; the child ends with what body returns, and 99 if it throws.
pid_t in_child(const std::function<int()>& body);
/// Waits for it: the exit code, or 128 and the signal that ended it.
int exit_of(pid_t process);

}  // namespace rnic::test
