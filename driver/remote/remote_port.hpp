#pragma once

#include <memory>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/remote/connection.hpp"
#include "driver/remote/remote_machine.hpp"

namespace rnic::remote {

/// A client of a kernel driver in another process.
class RemotePort final : public KernelPort {
 public:
  using KernelPort::call;
  RemotePort(std::shared_ptr<Connection> connection, std::shared_ptr<RemoteMachine> machine, std::uint32_t client)
      : connection_(std::move(connection)), machine_(std::move(machine)), client_(client) {}
  /// The client has gone when it returns.
  ~RemotePort() override;

  void call(std::span<const std::byte> request, std::span<std::byte> answer) override;
  [[nodiscard]] Result<std::shared_ptr<std::uint8_t>> map(const calls::MemoryRange& range) override;
  [[nodiscard]] Result<int> descriptor(calls::Handle channel) override;
  [[nodiscard]] Machine& machine() override { return *machine_; }

 private:
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<RemoteMachine> machine_;
  const std::uint32_t client_;
};

}  // namespace rnic::remote
