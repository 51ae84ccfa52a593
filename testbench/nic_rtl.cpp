#include "testbench/nic_rtl.hpp"

#include <algorithm>

namespace rnic::testbench {

NicRtl::NicRtl(const sc_core::sc_module_name& name, model::PcieLink& pcie, model::EthernetLink& ethernet,
               const NicOptions& options)
    : sc_module(name), pcie_(pcie), ethernet_(ethernet), links_{&pcie, &ethernet} {
  power_cycle(options);
  for (model::NicLink* link : links_) link->set_waker([this](bool at_once) { wake(at_once); });
  SC_HAS_PROCESS(NicRtl);
  SC_METHOD(cycle);
  sensitive << edge_event_.event();
  dont_initialize();
}

void NicRtl::power_cycle(const NicOptions& options) {
  if (nic_) stop_trace();
  options_ = options;
  nic_ = std::make_unique<VerilatedNic>(name(), pcie_, ethernet_, options.seed, options.clock);
  nic_->listen(listener_);
  clocked_ = 0;
  asleep_ = false;
  edges_ = {model::now_ps(), options.clock_phase, options.clock_period, options.clock_ppm};
  schedule(0);
  reset();
}

std::uint64_t NicRtl::cycles() const { return asleep_ ? edges_.first_edge_at(model::now_ps() + 1) : cycles_; }

void NicRtl::schedule(std::uint64_t number) {
  cycles_ = number;
  edge_event_.cancel();
  due_ = edges_.edge(number);
  edge_event_.notify_at(due_);
}

void NicRtl::cycle() {
  const bool in_reset = reset_left_ != 0;
  if (in_reset) --reset_left_;
  const model::Picoseconds now = model::now_ps();
  asleep_ = false;
  // Inputs settle half a cycle before the edge.
  nic_->cycle(cycles_, in_reset, now - options_.clock_period / 2, now);
  ++clocked_;
  if (options_.clock.gating && nic_->quiet_until()) {
    sleep();
  } else {
    schedule(cycles_ + 1);
  }
}

/// The next cycle is that of the NIC's deadline, or the first in which something can have arrived.
void NicRtl::sleep() {
  const std::uint64_t next = edges_.first_edge_at(model::now_ps() + 1);
  std::uint64_t number = *nic_->quiet_until();
  for (const model::NicLink* link : links_) {
    if (const auto arrival = link->next_arrival()) number = std::min(number, edges_.first_edge_at(*arrival));
  }
  asleep_ = true;
  due_ = kNeverDue;
  edge_event_.cancel();
  if (number != VerilatedNic::kNever) schedule(std::max(number, next));
}

/// Something may have changed that the clock waits for. An edge at this very time has been, unless it is due.
void NicRtl::wake(bool at_once) {
  if (!asleep_ || due_ == model::now_ps()) return;
  if (at_once) return schedule(edges_.first_edge_at(model::now_ps() + 1));
  sleep();
}

}  // namespace rnic::testbench
