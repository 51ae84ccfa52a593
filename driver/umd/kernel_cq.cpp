#include "driver/umd/kernel_cq.hpp"

namespace rnic::umd {

Result<void> KernelCq::begin(const calls::CreateCq&, const calls::CreateCq::Answer& answer) {
  is(answer.cq);
  cqn_ = answer.cqn;
  affinity_ = answer.affinity;
  auto entries = context().port().map(answer.ring);
  if (!entries) return entries.error();
  ring_ = {.memory = *entries, .entries = entries->get(), .log_depth = answer.log_depth, .origin = 0};
  return {};
}

Result<std::uint32_t> KernelCq::resize(std::uint32_t entries) {
  const auto answer = context().call(calls::ResizeCq{.cq = handle(), .entries = entries});
  if (!answer) return answer.error();
  auto memory = context().port().map(answer->ring);
  if (!memory) return memory.error();
  next_ring_ =
      CqRing{.memory = *memory, .entries = memory->get(), .log_depth = answer->log_depth, .origin = answer->origin};
  return answer->origin;
}

void KernelCq::adopt() noexcept {
  ring_ = std::move(*next_ring_);
  next_ring_.reset();
}

void KernelCq::give_back() { static_cast<void>(context().call(calls::AdoptCqRing{.cq = handle()}).ok()); }

Result<void> KernelCq::moderate(std::uint16_t count, std::uint16_t period_us) {
  const auto done = context().call(calls::ModifyCq{.cq = handle(), .count = count, .period_us = period_us});
  return done ? Result<void>() : done.error();
}

Result<calls::QueryCq::Answer> KernelCq::query() { return context().call(calls::QueryCq{.cq = handle()}); }

}  // namespace rnic::umd
