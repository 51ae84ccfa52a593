#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rnic::testbench {

/// The command line of this process, for those who run it again. Called once, before all else.
void remember_command_line(int argc, char** argv);
/// The same without the program, the options named `without` and their values, and those that say where a run leaves
/// its files. What stands behind a "--" stays as it is.
[[nodiscard]] std::vector<std::string> command_line(const std::vector<std::string>& without = {});

/// That as text: "rnic ...".
[[nodiscard]] std::string command_text(const std::vector<std::string>& without = {});

/// `text` as a shell reads it.
[[nodiscard]] std::string quoted(const std::string& text);

/// Where failed runs leave what they were: each is run once more, in a process of its own, with a capture of the wire
/// and the last microseconds of waves. One seed is one run, so it fails again at the same time.
class FailureFolder {
 public:
  /// --failures FOLDER.
  void add_option(CLI::App& command);

  /// Runs the tool with `arguments` into <folder>/<name>/ and prints that. `failed_ns`: when it failed, simulated time
  /// since the reset. Does so for the first few alone, and never throws: the failure itself is what matters.
  /// Returns that folder; empty: nothing was left.
  std::filesystem::path leave(const std::string& name, std::vector<std::string> arguments, std::uint64_t failed_ns);
  /// Where leave puts what it has of `name`.
  [[nodiscard]] std::filesystem::path of(const std::string& name) const;
  [[nodiscard]] bool wanted() const { return !folder_.empty() && left_ < kMost; }

 private:
  static constexpr unsigned kMost = 3;

  std::string folder_ = "rnic-failures";
  unsigned left_ = 0;
};

}  // namespace rnic::testbench
