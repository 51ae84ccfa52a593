#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/umd/waiting.hpp"
#include "driver/win32/surroundings.hpp"

namespace rnic::nd2 {

/// Threads of a process whose device is on a machine of its own: whoever waits takes the device's events meanwhile, for
/// nobody else does. Time is the machine's; it goes on when the machine has gone.
class ProcessSurroundings final : public win32::Surroundings, private win32::Waiter {
 public:
  /// `node` outlives it.
  explicit ProcessSurroundings(DeviceNode& node) : node_(node) {}

  win32::Waiter& waiter() override { return *this; }
  std::uint64_t now_ns() override;
  /// A thread that spins waits for the machine, which may want the same processor; and no other thread takes the
  /// events.
  void pause() override { yield(); }
  void yield() override;

 private:
  win32::Waited wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) override;
  void wake() override;

  DeviceNode& node_;
  umd::SpinLook spins_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::atomic<std::uint64_t> wakes_{};
  std::atomic<unsigned> without_device_{};  ///< Threads that wait
  std::once_flag end_;
  std::uint64_t machine_end_{}, own_end_{};  ///< Of the machine's time, and when that was
};

}  // namespace rnic::nd2
