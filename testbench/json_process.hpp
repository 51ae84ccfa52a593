#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rnic::testbench {

/// JSON values between two processes, a line each.
class JsonChannel {
 public:
  /// Of a connected stream socket, which it closes; -1: none.
  explicit JsonChannel(int socket = -1) : socket_(socket) {}
  ~JsonChannel() { close(); }
  JsonChannel(const JsonChannel&) = delete;
  JsonChannel& operator=(const JsonChannel&) = delete;

  /// What is no UTF-8 goes as U+FFFD. False: the other process has ended.
  bool send(const nlohmann::json& value);
  /// The next value; waits for it. Nothing: the other process has ended, perhaps within a line.
  [[nodiscard]] std::optional<nlohmann::json> receive();
  void open(int socket);
  void close();

 private:
  int socket_;
  std::string read_;  ///< What came behind the last value
};

/// A child process that works for this one: it is given JSON values, and answers with JSON values.
class JsonProcess {
 public:
  /// What the child does. It ends with exit code 0 when this returns, 1 when it throws, and is killed when its parent
  /// ends before.
  using Work = std::function<void(JsonChannel& parent)>;

  explicit JsonProcess(Work work) : work_(std::move(work)) {}
  ~JsonProcess() { stop(); }
  JsonProcess(const JsonProcess&) = delete;
  JsonProcess& operator=(const JsonProcess&) = delete;

  /// Unless it runs: as a copy of what is there now. Throws std::system_error.
  void start();
  /// To the child; not before `start`.
  [[nodiscard]] JsonChannel& child() { return child_; }
  /// Waits until it ends, and says in words how it has ("has ended with exit code 3"); "" if it did not run.
  std::string wait();
  /// Ends it at once, if it runs.
  void stop();

 private:
  Work work_;
  JsonChannel child_;
  pid_t process_ = -1;
};

}  // namespace rnic::testbench
