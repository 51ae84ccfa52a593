#pragma once

#include <memory>

#include "driver/gsi/agent.hpp"
#include "testbench/kernel_thread.hpp"

namespace rnic::testbench {

/// The thread of a simulated host that has QP1 (gsi::Agent).
class ManagementThread {
 public:
  /// Throws std::runtime_error: QP1 cannot be had. `kernel` and `device` outlive it.
  ManagementThread(kmd::KernelDevice& kernel, SimDevice& device);

  [[nodiscard]] const gsi::Agent& agent() const { return *agent_; }

 private:
  std::unique_ptr<gsi::Agent> agent_;
  KernelThread thread_;
};

}  // namespace rnic::testbench
