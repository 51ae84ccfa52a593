#include "driver/kmd/event_queue.hpp"

#include "driver/bits.hpp"
#include "driver/mmio.hpp"

namespace rnic::kmd {

EventQueue::EventQueue(Device& device, std::uint32_t eqn, std::uint32_t vector, unsigned log_depth, DmaMemory ring)
    : device_(device), eqn_(eqn), vector_(vector), log_depth_(log_depth), ring_(std::move(ring)) {}

unsigned EventQueue::drain(const std::function<void(const hw::Eqe&)>& handle) {
  unsigned taken = 0;
  for (hw::Eqe eqe; take(eqe); ++taken) handle(eqe);
  return taken;
}

bool EventQueue::take(hw::Eqe& eqe) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  constexpr auto kBytes = hw::Eqe::kBytes;
  const std::uint32_t index = consumer_ & static_cast<std::uint32_t>(bits::mask(log_depth_));
  const std::span<const std::uint8_t, kBytes> entry(ring_.data() + index * kBytes, kBytes);
  const std::uint8_t expected = (consumer_ >> log_depth_) % 2 == 0 ? 1 : 0;
  if (load_phase(entry) != expected) return false;
  dma_read_barrier();
  eqe = hw::Eqe::decode(entry);
  ++consumer_;
  dma_release_barrier();
  device_.write64(hw::kKernelUar * hw::kUarPageBytes + hw::uar::kEqDoorbell,
                  hw::EqDoorbell{.eqn = eqn_, .consumer_index = consumer_}.word());
  return true;
}

void EventQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

}  // namespace rnic::kmd
