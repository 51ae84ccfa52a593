#pragma once

#include <cstdint>

#include "testbench/server/log_follower.hpp"
#include "testbench/server/session.hpp"

namespace rnic::testbench {

/// A process of a log: there is nobody, and it says what the log has.
class ReplayedSession : public Session {
 public:
  /// `number` is that of the log. `follower` outlives it.
  ReplayedSession(HostServer& host, std::int32_t process, std::uint64_t number, LogFollower& follower)
      : Session(host, process), number_(number), follower_(follower) {}

  /// What it says next.
  void say(const LogRecord& record);

 private:
  [[nodiscard]] bool send(const Answer& answer) override;

  const std::uint64_t number_;
  LogFollower& follower_;
};

}  // namespace rnic::testbench
