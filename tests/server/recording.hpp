#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/server/log_file.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

namespace rnic::test {

/// What is in a file; empty: nothing, or there is none.
[[nodiscard]] std::string text_of(const std::filesystem::path& file);

/// A machine that writes its log, and the log once more.
class Recording {
 public:
  explicit Recording(std::vector<std::string> arguments = {});

  [[nodiscard]] ServerProcess& server() { return *server_; }
  [[nodiscard]] const LogFile& log() const { return log_; }
  [[nodiscard]] Tool& tool() { return tool_; }
  [[nodiscard]] std::string at(const std::string& name) const { return tool_.folder() + "/" + name; }

  /// The log, once more, with these arguments and files of its own.
  Outcome replay(const std::vector<std::string>& arguments = {});
  /// Ends the machine, and holds the run against its replay.
  void check(const std::vector<std::string>& arguments = {});

 private:
  Tool tool_;
  LogFile log_;
  std::unique_ptr<ServerProcess> server_;
};

/// Two connections that work with each other.
struct Peers {
  RemotePeer a, b;

  explicit Peers(const ServerProcess& server, unsigned from = 0, unsigned to = 1);
  /// A request of `a` that reaches `b` at `offset`, and what it came to.
  hw::CqeStatus move(hw::WqeOpcode opcode, std::span<const umd::Segment> segments, std::uint32_t offset = 0);
  /// Some of everything, which must succeed.
  void work();
};

}  // namespace rnic::test
