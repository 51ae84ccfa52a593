#pragma once

#include <cstdint>
#include <memory>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::testbench {

/// The device of a simulated host as one process finds it: what the process has opened is known, and ends with it, as
/// it does when a process of a system ends. Its events are its own. In simulated time only; when that is over, threads
/// of the process stay where they are.
class ProcessNode final : public DeviceNode {
 public:
  /// `kernel` outlives it. Its ports may outlive it.
  explicit ProcessNode(kmd::KernelDevice& kernel);
  ~ProcessNode() override;

  [[nodiscard]] Result<std::unique_ptr<KernelPort>> open() override;
  [[nodiscard]] Machine& machine() override;
  [[nodiscard]] EventTakers& takers() override { return takers_; }

  /// Endpoints at which it listens for connections. Throws std::bad_alloc.
  [[nodiscard]] std::uint32_t listening();
  /// The process ends: no thread of it goes on that lets time pass here, nothing is opened any more, and everything
  /// that it still has is taken back. By a thread that is none of it. Lets time pass.
  void end();

 private:
  class View;
  class Port;
  struct Inside;

  const std::shared_ptr<Inside> inside_;
  EventTakers takers_;
};

}  // namespace rnic::testbench
