#pragma once

#include <cstdint>

#include "testbench/server/machine_server.hpp"

namespace rnic::testbench {

/// One line on standard error about a machine that runs, renewed twice a second, when that is a terminal.
class StatusLine {
 public:
  explicit StatusLine(MachineServer& server);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  void show();

  MachineServer& server_;
  bool terminal_;
  std::uint64_t shown_ns_ = 0;     ///< Simulated time
  std::uint64_t shown_bytes_ = 0;  ///< On the wire
};

}  // namespace rnic::testbench
