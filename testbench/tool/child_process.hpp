#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/remote/descriptor.hpp"

namespace rnic::testbench {

/// No child has them by itself.
struct Pipe {
  /// Throws std::system_error.
  Pipe();

  remote::Descriptor read_end;
  remote::Descriptor write_end;
};

struct ChildOptions {
  std::vector<std::string> command;  ///< Program, looked for as a shell does, and its arguments
  std::vector<std::pair<std::string, std::string>> environment;  ///< Beside the own
  int output = -1;                                               ///< Descriptor for standard output; -1: the own
  int errors = -1;                                               ///< The same for standard error
  int keeps = -1;                                                ///< A descriptor that stays open in it
  bool ends_with_us = false;                                     ///< It ends with this process
  bool own_group = false;  ///< Signals of the terminal do not reach it, and it ends with this process
};

/// A process that this one has started and waits for.
class ChildProcess {
 public:
  /// Throws std::system_error when there is no such program, or no process for it.
  explicit ChildProcess(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept : process_(std::exchange(other.process_, -1)), code_(other.code_) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// One that still runs is killed.
  ~ChildProcess();

  [[nodiscard]] pid_t process() const { return process_; }
  /// Its exit code, or 128 and the number of the signal that ended it.
  int wait();
  /// The same, if it has ended.
  std::optional<int> ended();
  void signal(int number);

 private:
  std::optional<int> look(bool wait);

  pid_t process_ = -1;
  std::optional<int> code_;
};

}  // namespace rnic::testbench
