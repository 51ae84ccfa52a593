#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testbench/server/log_follower.hpp"
#include "testbench/server/machine_server.hpp"
#include "testbench/server/replayed_memory.hpp"
#include "testbench/server/replayed_session.hpp"

namespace rnic::testbench {

/// Runs a log once more, in lockstep: what came from outside comes at the same simulated time, in the same order, and
/// what the simulation meets is held against the log.
class EventLogReplay {
 public:
  /// `server` is one of the machine that the log says, which has not begun. Both outlive it.
  EventLogReplay(MachineServer& server, EventLogReader& log);
  EventLogReplay(const EventLogReplay&) = delete;
  EventLogReplay& operator=(const EventLogReplay&) = delete;
  ~EventLogReplay();

  enum class Outcome : std::uint8_t {
    kWhole,   ///< To the end of the machine; `figures` says what it came to
    kCutOff,  ///< To where the log ends, which is not the end of the machine
  };
  /// Throws Divergence, EventLogError where the log is damaged, and what the simulation does.
  Outcome run();
  /// Of the log, JSON.
  [[nodiscard]] const std::string& figures() const { return figures_; }
  /// The simulation has failed with `why`: the log says the same.
  [[nodiscard]] bool failure_is_known(const std::string& why);

 private:
  void let_pass(const LogRecord& next);
  void act(const LogRecord& record);
  [[noreturn]] void wrong(const std::string& what) const;

  MachineServer& server_;
  LogFollower follower_;
  std::vector<std::unique_ptr<ReplayedMemory>> memories_;
  std::vector<std::weak_ptr<ReplayedSession>> sessions_;  ///< By number of the log
  bool finished_ = false;
  std::string figures_;
};

}  // namespace rnic::testbench
