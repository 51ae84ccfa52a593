#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "driver/kernel_calls/kernel_port.hpp"

namespace rnic::umd {

/// Takes events, hands them out, and does what has come of them, until `done` holds, `timeout_ns` is over, or the
/// device has failed for all that the process has open; returns whether it holds. Lets time pass. This is how a thread
/// waits for anything that an interrupt or Machine::wake announces. A thread that hears nothing for long asks whether
/// the device is still well.
bool wait_until(DeviceNode& node, const std::function<bool()>& done, std::uint64_t timeout_ns = kForever);

/// Of a call that asks and does not wait: some time passes, or a loop of such calls would never end in simulated time.
void poll_in_vain(Machine& machine);

/// For threads that spin and do not wait: what an interrupt, or Machine::wake, has announced since the last look is
/// taken and handed out. Thread safe.
class SpinLook {
 public:
  void look(DeviceNode& node);

 private:
  std::atomic<std::uint64_t> seen_{};  ///< Machine::wake_count
};

}  // namespace rnic::umd
