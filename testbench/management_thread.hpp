#pragma once

#include <memory>
#include <systemc>

#include "driver/gsi/agent.hpp"
#include "testbench/sim_device.hpp"

namespace rnic::testbench {

/// The thread of a simulated host that has QP1 (gsi::Agent), from its making to its end. Both are on a thread of
/// simulated time, and let time pass; when that is over, only its end may follow.
class ManagementThread {
 public:
  /// Throws std::runtime_error: QP1 cannot be had. `kernel` and `device` outlive it.
  ManagementThread(kmd::KernelDevice& kernel, SimDevice& device);
  ManagementThread(const ManagementThread&) = delete;
  ManagementThread& operator=(const ManagementThread&) = delete;
  ~ManagementThread();

  [[nodiscard]] const gsi::Agent& agent() const { return *agent_; }

 private:
  SimDevice& device_;
  std::unique_ptr<gsi::Agent> agent_;
  sc_core::sc_process_handle thread_;
};

}  // namespace rnic::testbench
