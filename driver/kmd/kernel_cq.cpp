#include "driver/kmd/kernel_cq.hpp"

#include <bit>

namespace rnic::kmd {

Result<std::unique_ptr<KernelCq>> KernelDevice::create_cq(const CqSpec& spec) {
  if (admin_.failed()) return Error::kDeviceFailed;
  if (spec.entries == 0 || spec.entries > limits_.max_cq_depth) return Error::kInvalidParameter;
  const auto log_depth = static_cast<unsigned>(std::bit_width(spec.entries - 1));
  auto number = cqs_->acquire();
  if (!number) return number.error();
  auto ring = DmaMemory::allocate(device_, hw::Cqe::kBytes << log_depth);
  if (!ring) {
    cqs_->release(number->index);
    return ring.error();
  }
  hw::AdminCreateCq body;
  body.base = ring->iova();
  body.log_depth = static_cast<std::uint8_t>(log_depth);
  body.eqn = static_cast<std::uint8_t>(next_eqn());
  body.uar = static_cast<std::uint8_t>(spec.uar);
  const std::uint32_t cqn = number->over(hw::kCqIndexBits);
  auto reply = admin_.execute(hw::AdminOpcode::kCreateCq, cqn, body);
  if (!reply) {
    if (admin_.failed()) ring->abandon();
    cqs_->release(number->index);
    return reply.error();
  }
  return std::unique_ptr<KernelCq>(new KernelCq(*this, cqn, spec.uar, {ring.take(), log_depth, 0}));
}

KernelCq::~KernelCq() {
  if (live_ && !destroy()) ring_.memory.abandon();
}

Result<CqRing> KernelCq::resize(std::uint32_t entries) {
  if (entries == 0 || entries > kernel_.limits_.max_cq_depth) return Error::kInvalidParameter;
  CqRing ring;
  ring.log_depth = static_cast<unsigned>(std::bit_width(entries - 1));
  auto memory = DmaMemory::allocate(kernel_.device_, hw::Cqe::kBytes << ring.log_depth);
  if (!memory) return memory.error();
  ring.memory = memory.take();
  hw::AdminResizeCq body;
  body.base = ring.memory.iova();
  body.log_depth = static_cast<std::uint8_t>(ring.log_depth);
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kResizeCq, cqn_, body);
  if (!reply) {
    if (kernel_.admin_.failed()) ring.memory.abandon();
    return reply.error();
  }
  ring.origin = hw::AdminQueueState::decode(*reply).producer_index;
  return ring;
}

void KernelCq::adopt(CqRing ring) { ring_ = std::move(ring); }

Result<void> KernelCq::moderate(std::uint16_t count, std::uint16_t period_us) {
  hw::AdminModifyCq body;
  body.count = count;
  body.period = period_us;
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kModifyCq, cqn_, body);
  if (!reply) return reply.error();
  return {};
}

Result<hw::AdminQueueState> KernelCq::query() {
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kQueryCq, cqn_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminQueueState::decode(*reply);
}

Result<void> KernelCq::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(hw::AdminOpcode::kDestroyCq, cqn_); !done) return done;
  live_ = false;
  kernel_.cqs_->release(cqn_ % (1U << hw::kCqIndexBits));
  return {};
}

}  // namespace rnic::kmd
