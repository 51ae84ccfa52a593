#include "driver/kmd/kernel_srq.hpp"

#include <utility>

namespace rnic::kmd {

Result<std::unique_ptr<KernelSrq>> KernelDevice::create_srq(const SrqSpec& spec) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelSrq>> {
    if (limits_.max_srq == 0) return Error::kNotSupported;
    if (spec.log_depth > hw::kMaxLogQueueDepth || (1U << spec.log_depth) > limits_.max_srq_depth ||
        spec.log_stride < hw::kMinLogReceiveStride || spec.log_stride > hw::kMaxLogStride) {
      return Error::kInvalidParameter;
    }
    auto ring = DmaMemory::share(device_, 1ULL << (spec.log_depth + spec.log_stride), spec.account);
    if (!ring) return ring.error();
    auto number = OwnedNumber::acquire(*srqs_);
    if (!number) return number.error();
    std::unique_ptr<KernelSrq> srq(new KernelSrq(*this, number.take(), spec, ring.take()));
    hw::AdminCreateSrq body;
    body.base = srq->rings_.back()->iova();
    body.pd = spec.pd;
    body.log_depth = static_cast<std::uint8_t>(spec.log_depth);
    body.log_stride = static_cast<std::uint8_t>(spec.log_stride);
    body.eqn = static_cast<std::uint8_t>(next_eqn(*srq->life_, srq->affinity_));
    body.uar = static_cast<std::uint8_t>(spec.uar);
    auto reply = execute(*srq->life_, hw::AdminOpcode::kCreateSrq, srq->srqn(), body);
    if (!reply) return reply.error();
    srq->live_ = true;
    return srq;
  });
}

KernelSrq::~KernelSrq() {
  if (destroy()) return;
  for (auto& ring : rings_) ring->abandon();
  number_.abandon();
}

Result<void> KernelSrq::arm(std::uint16_t limit) {
  hw::AdminModifySrq body;
  body.set_limit = 1;
  body.limit = limit;
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kModifySrq, srqn(), body);
  if (!reply) return reply.error();
  return {};
}

Result<void> KernelSrq::move_to(const std::shared_ptr<DmaMemory>& ring, unsigned log_depth) {
  if (log_depth <= log_depth_) return Error::kInvalidParameter;
  // Room first: a ring that the device has taken must not be lost.
  if (auto room = or_out_of_memory([&]() -> Result<void> { return rings_.reserve(rings_.size() + 1), Result<void>(); });
      !room)
    return room;
  hw::AdminModifySrq body;
  body.set_ring = 1;
  body.base = ring->iova();
  body.log_depth = static_cast<std::uint8_t>(log_depth);
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kModifySrq, srqn(), body);
  if (!reply) return reply.error();
  rings_.push_back(ring);
  log_depth_ = log_depth;
  return {};
}

Result<hw::AdminSrqState> KernelSrq::query() {
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kQuerySrq, srqn(), AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminSrqState::decode(*reply);
}

Result<void> KernelSrq::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(*life_, hw::AdminOpcode::kDestroySrq, srqn()); !done) return done;
  live_ = false;
  return {};
}

}  // namespace rnic::kmd
