#pragma once

#include <functional>
#include <systemc>

#include "testbench/sim_device.hpp"

namespace rnic::testbench {

/// A thread of a simulated host's kernel, from its making to its end. Both are on a thread of simulated time, and let
/// time pass; when that is over, only its end may follow.
class KernelThread {
 public:
  /// What it does until it is stopped.
  struct Job {
    std::function<void()> run;
    std::function<bool()> running;
    std::function<void()> stop;
  };
  /// Returns when it is inside `run`. `device` outlives it.
  KernelThread(SimDevice& device, Job job);
  KernelThread(const KernelThread&) = delete;
  KernelThread& operator=(const KernelThread&) = delete;
  ~KernelThread();

 private:
  SimDevice& device_;
  const Job job_;
  sc_core::sc_process_handle thread_;
};

}  // namespace rnic::testbench
