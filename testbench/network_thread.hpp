#pragma once

#include <memory>
#include <set>

#include "driver/ip/network.hpp"
#include "testbench/kernel_thread.hpp"

namespace rnic::testbench {

/// The thread of a simulated host that is found on its network (ip::Network).
class NetworkThread {
 public:
  /// Throws std::runtime_error: its queue pair cannot be had. `kernel` and `device` outlive it.
  NetworkThread(kmd::KernelDevice& kernel, SimDevice& device, std::set<ip::Address> settled);

  [[nodiscard]] ip::Network& network() { return *network_; }

 private:
  std::unique_ptr<ip::Network> network_;
  KernelThread thread_;
};

}  // namespace rnic::testbench
