#include "driver/kmd/kernel_srq.hpp"

#include <utility>

namespace rnic::kmd {

Result<std::unique_ptr<KernelSrq>> KernelDevice::create_srq(const SrqSpec& spec) {
  if (admin_.failed()) return Error::kDeviceFailed;
  if (limits_.max_srq == 0) return Error::kNotSupported;
  if ((1U << spec.log_depth) > limits_.max_srq_depth || spec.log_stride < hw::kMinLogReceiveStride ||
      spec.log_stride > hw::kMaxLogStride) {
    return Error::kInvalidParameter;
  }
  auto ring = DmaMemory::allocate(device_, 1ULL << (spec.log_depth + spec.log_stride));
  if (!ring) return ring.error();
  auto number = srqs_->acquire();
  if (!number) return number.error();
  hw::AdminCreateSrq body;
  body.base = ring->iova();
  body.pd = spec.pd;
  body.log_depth = static_cast<std::uint8_t>(spec.log_depth);
  body.log_stride = static_cast<std::uint8_t>(spec.log_stride);
  body.eqn = static_cast<std::uint8_t>(next_eqn());
  body.uar = static_cast<std::uint8_t>(spec.uar);
  const std::uint32_t srqn = number->over(hw::kSrqIndexBits);
  auto reply = admin_.execute(hw::AdminOpcode::kCreateSrq, srqn, body);
  if (!reply) {
    if (admin_.failed()) ring->abandon();
    srqs_->release(number->index);
    return reply.error();
  }
  return std::unique_ptr<KernelSrq>(new KernelSrq(*this, srqn, spec, ring.take()));
}

KernelSrq::~KernelSrq() {
  if (live_ && !destroy()) {
    for (auto& ring : rings_) ring.abandon();
  }
}

Result<void> KernelSrq::arm(std::uint16_t limit) {
  hw::AdminModifySrq body;
  body.set_limit = 1;
  body.limit = limit;
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kModifySrq, srqn_, body);
  if (!reply) return reply.error();
  return {};
}

Result<void> KernelSrq::move_to(DmaMemory ring, unsigned log_depth) {
  hw::AdminModifySrq body;
  body.set_ring = 1;
  body.base = ring.iova();
  body.log_depth = static_cast<std::uint8_t>(log_depth);
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kModifySrq, srqn_, body);
  if (!reply) {
    if (kernel_.admin_.failed()) ring.abandon();
    return reply.error();
  }
  rings_.push_back(std::move(ring));
  log_depth_ = log_depth;
  return {};
}

Result<hw::AdminSrqState> KernelSrq::query() {
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kQuerySrq, srqn_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminSrqState::decode(*reply);
}

Result<void> KernelSrq::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(hw::AdminOpcode::kDestroySrq, srqn_); !done) return done;
  live_ = false;
  kernel_.srqs_->release(srqn_ % (1U << hw::kSrqIndexBits));
  return {};
}

}  // namespace rnic::kmd
