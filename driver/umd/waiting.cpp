#include "driver/umd/waiting.hpp"

#include <algorithm>

#include "driver/costs.hpp"

namespace rnic::umd {

bool wait_until(DeviceNode& node, const std::function<bool()>& done, std::uint64_t timeout_ns) {
  Machine& machine = node.machine();
  const std::uint64_t start = machine.now_ns();
  for (;;) {
    const std::uint64_t seen = machine.wake_count();
    // In this order: a failure seen here has been handed out below, by this thread or by one that is still about it.
    const bool working = !machine.removed() && node.takers().any_working();
    if (const unsigned taken = node.takers().take_events(); taken != 0) machine.elapse(taken * cost::kEventNs);
    node.takers().work();
    const bool usable = working || node.takers().any_handing_out();
    if (done()) return true;
    const std::uint64_t passed = machine.now_ns() - start;
    if (!usable || passed >= timeout_ns) return false;
    const std::uint64_t left = timeout_ns - passed;
    if (machine.wait(seen, std::min(left, cost::kHealthNs))) {
      machine.elapse(cost::kInterruptNs);
    } else if (left > cost::kHealthNs) {
      node.takers().check_device();
    }
  }
}

void poll_in_vain(Machine& machine) {
  machine.elapse(cost::kPollNs);
  machine.relax();
}

void SpinLook::look(DeviceNode& node) {
  Machine& machine = node.machine();
  const std::uint64_t count = machine.wake_count();
  if (seen_.exchange(count, std::memory_order_relaxed) == count) return;
  if (const unsigned taken = node.takers().take_events(); taken != 0) machine.elapse(taken * cost::kEventNs);
  node.takers().work();
}

}  // namespace rnic::umd
