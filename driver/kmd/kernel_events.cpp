#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

unsigned KernelDevice::dispatch_events() {
  unsigned taken = 0;
  const auto life = this->life();
  for (auto& queue : life->event_queues) {
    const unsigned from_queue = queue->drain([this, &life](const hw::Eqe& eqe) { hand_out(*life, eqe); });
    taken += from_queue;
    // An event queue that was full may have lost events: every CQ is looked at as if it had one.
    if (from_queue >= queue->depth()) events_.tell_completion_queues();
  }
  life->admin.tell();
  return taken;
}

/// Takes no memory: an entry that was taken from the ring must reach its sink.
void KernelDevice::hand_out(DeviceLife& life, const hw::Eqe& eqe) {
  if (events_.hand_out(eqe)) return;
  if (static_cast<hw::EqeType>(eqe.event_type) == hw::EqeType::kDeviceFatal) return fail(life);
  device_.report(DeviceOddity::kUnknownEvent, eqe.event_type);
}

}  // namespace rnic::kmd
