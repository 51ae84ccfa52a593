#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "driver/machine.hpp"
#include "driver/remote/connection.hpp"
#include "driver/remote/simulated_time.hpp"

namespace rnic::remote {

/// A host of a machine that is another process, as this process has it: doorbells go through the connection's ring,
/// waits are on its words. Time is the machine's (MachineClock).
class RemoteMachine final : public Machine {
 public:
  explicit RemoteMachine(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)), memory_(connection_->memory()), simulated_(*connection_) {}

  void write64(std::uint64_t offset, std::uint64_t value) override;
  void write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) override;
  [[nodiscard]] std::uint64_t wake_count() override { return memory_.wakes.count.load(); }
  void wake() override { memory_.wakes.advance(); }
  [[nodiscard]] bool wait(std::uint64_t seen, std::uint64_t timeout_ns) override;
  [[nodiscard]] bool removed() override { return connection_->gone(); }
  void report(DeviceOddity, std::uint32_t) override {}
  /// The processor's own time passes. Who asks for as much as this between two looks polls.
  void elapse(std::uint64_t ns) override;
  void relax() override;
  /// Never less than before, whichever thread has asked.
  [[nodiscard]] std::uint64_t now_ns() override;
  [[nodiscard]] std::uint64_t device_ns() override { return simulated_.now_ns(); }

 private:
  void write(std::uint64_t offset, std::span<const std::uint8_t> data);
  [[gnu::cold]] bool wait_for_room(std::uint32_t ticket);
  void pause();

  const std::shared_ptr<Connection> connection_;
  ConnectionMemory& memory_;
  SimulatedTime simulated_;
  std::atomic<std::uint32_t> seen_writes_{};  ///< When somebody polled in vain last
  std::atomic<std::uint32_t> vain_polls_{};   ///< Since then
  std::atomic<std::uint64_t> told_ns_{};      ///< The latest time that anybody was told
};

}  // namespace rnic::remote
