#include "driver/umd/kernel_srq.hpp"

#include <utility>

namespace rnic::umd {

Result<void> KernelSrq::begin(const calls::CreateSrq& request, const calls::CreateSrq::Answer& answer) {
  is(answer.srq);
  srqn_ = answer.srqn;
  affinity_ = answer.affinity;
  log_depth_ = request.log_depth;
  log_stride_ = request.log_stride;
  auto ring = context().port().map(answer.ring);
  if (!ring) return ring.error();
  ring_ = ring.take();
  return {};
}

Result<void> KernelSrq::arm(std::uint16_t limit) {
  const auto done = context().call(calls::ArmSrq{.srq = handle(), .limit = limit});
  return done ? Result<void>() : done.error();
}

Result<std::shared_ptr<std::uint8_t>> KernelSrq::prepare(unsigned log_depth) {
  const auto answer =
      context().call(calls::PrepareSrqRing{.srq = handle(), .log_depth = static_cast<std::uint8_t>(log_depth)});
  if (!answer) return answer.error();
  return context().port().map(answer->ring);
}

Result<void> KernelSrq::use() {
  const auto done = context().call(calls::UseSrqRing{.srq = handle()});
  return done ? Result<void>() : done.error();
}

std::shared_ptr<std::uint8_t> KernelSrq::adopt(std::shared_ptr<std::uint8_t> ring, unsigned log_depth) {
  log_depth_ = log_depth;
  return std::exchange(ring_, std::move(ring));
}

Result<calls::QuerySrq::Answer> KernelSrq::query() { return context().call(calls::QuerySrq{.srq = handle()}); }

}  // namespace rnic::umd
