#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/kmd/client.hpp"
#include "driver/kmd/event_descriptor.hpp"

namespace rnic::kmd {

/// The kernel driver and its clients in one process (lockstep): a call is a function call, shared memory a pointer.
class LocalNode final : public DeviceNode {
 public:
  /// `trusted`: who comes through it belongs to the kernel.
  LocalNode(KernelDevice& kernel, bool trusted, EventTakers& takers)
      : kernel_(kernel), trusted_(trusted), takers_(takers) {}

  [[nodiscard]] Result<std::unique_ptr<KernelPort>> open() override;
  [[nodiscard]] Machine& machine() override { return kernel_.device(); }
  [[nodiscard]] EventTakers& takers() override { return takers_; }

 private:
  KernelDevice& kernel_;
  const bool trusted_;
  EventTakers& takers_;
};

/// The port of a client in the same process.
class LocalPort final : public KernelPort {
 public:
  using KernelPort::call;
  LocalPort(KernelDevice& kernel, std::unique_ptr<Client> client) : kernel_(kernel), client_(std::move(client)) {}

  void call(std::span<const std::byte> request, std::span<std::byte> answer) override;
  [[nodiscard]] Result<std::shared_ptr<std::uint8_t>> map(const calls::MemoryRange& range) override {
    return client_->map(range);
  }
  [[nodiscard]] Result<int> descriptor(calls::Handle channel) override;
  [[nodiscard]] Machine& machine() override { return kernel_.device(); }
  [[nodiscard]] Client& client() { return *client_; }

 private:
  KernelDevice& kernel_;
  const std::unique_ptr<Client> client_;
  std::mutex descriptors_mutex_;
  std::map<calls::Handle, std::unique_ptr<EventDescriptor>> descriptors_;  ///< Those that were asked for, by channel
};

}  // namespace rnic::kmd
