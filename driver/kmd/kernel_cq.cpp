#include "driver/kmd/kernel_cq.hpp"

#include <utility>

#include "driver/ring_size.hpp"

namespace rnic::kmd {

Result<std::unique_ptr<KernelCq>> KernelDevice::create_cq(const CqSpec& spec) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelCq>> {
    if (spec.entries == 0 || spec.entries > limits_.max_cq_depth) return Error::kInvalidParameter;
    const auto log_depth = ring_log_depth(spec.entries);
    auto number = OwnedNumber::acquire(*cqs_);
    if (!number) return number.error();
    auto ring = DmaMemory::share(device_, hw::Cqe::kBytes << log_depth, spec.account);
    if (!ring) return ring.error();
    std::unique_ptr<KernelCq> cq(new KernelCq(*this, number.take(), spec, {ring.take(), log_depth, 0}));
    hw::AdminCreateCq body;
    body.base = cq->ring_.memory->iova();
    body.log_depth = static_cast<std::uint8_t>(log_depth);
    body.eqn = static_cast<std::uint8_t>(next_eqn(*cq->life_, cq->affinity_));
    body.uar = static_cast<std::uint8_t>(spec.uar);
    auto reply = execute(*cq->life_, hw::AdminOpcode::kCreateCq, cq->cqn(), body);
    if (!reply) return reply.error();
    cq->live_ = true;
    return cq;
  });
}

KernelCq::~KernelCq() {
  if (destroy()) return;
  ring_.memory->abandon();
  if (last_ring_.memory != nullptr) last_ring_.memory->abandon();
  if (next_ring_) next_ring_->memory->abandon();
  number_.abandon();
}

Result<std::uint32_t> KernelCq::resize(std::uint32_t entries) {
  if (entries == 0 || entries > kernel_.limits_.max_cq_depth) return Error::kInvalidParameter;
  if (next_ring_) return Error::kInvalidState;
  CqRing ring;
  ring.log_depth = ring_log_depth(entries);
  auto memory = DmaMemory::share(kernel_.device_, hw::Cqe::kBytes << ring.log_depth, account_);
  if (!memory) return memory.error();
  ring.memory = memory.take();
  hw::AdminResizeCq body;
  body.base = ring.memory->iova();
  body.log_depth = static_cast<std::uint8_t>(ring.log_depth);
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kResizeCq, cqn(), body);
  if (!reply) return reply.error();
  ring.origin = hw::AdminQueueState::decode(*reply).producer_index;
  next_ring_ = std::move(ring);
  return next_ring_->origin;
}

void KernelCq::adopt() noexcept {
  if (!next_ring_) return;
  last_ring_ = std::exchange(ring_, std::move(*next_ring_));
  next_ring_.reset();
}

Result<void> KernelCq::moderate(std::uint16_t count, std::uint16_t period_us) {
  hw::AdminModifyCq body;
  body.count = count;
  body.period = period_us;
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kModifyCq, cqn(), body);
  if (!reply) return reply.error();
  return {};
}

Result<hw::AdminQueueState> KernelCq::query() {
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kQueryCq, cqn(), AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminQueueState::decode(*reply);
}

Result<void> KernelCq::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(*life_, hw::AdminOpcode::kDestroyCq, cqn()); !done) return done;
  live_ = false;
  return {};
}

}  // namespace rnic::kmd
