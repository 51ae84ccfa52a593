#include "testbench/nic_rtl.hpp"

#include <cmath>

namespace rnic::testbench {

NicRtl::NicRtl(const sc_core::sc_module_name& name, model::PcieLink& pcie, model::EthernetLink& ethernet,
               const NicOptions& options)
    : sc_module(name), pcie_(pcie), ethernet_(ethernet) {
  power_cycle(options);
  SC_HAS_PROCESS(NicRtl);
  SC_METHOD(cycle);
  sensitive << edge_event_;
  dont_initialize();
}

void NicRtl::power_cycle(const NicOptions& options) {
  options_ = options;
  nic_ = std::make_unique<VerilatedNic>(name(), pcie_, ethernet_, options.seed);
  nic_->listen(listener_);
  cycles_ = 0;
  epoch_ = model::now_ps();
  edge_event_.cancel();
  edge_event_.notify(model::to_sc_time(edge(0) - epoch_));
  reset();
}

/// Time of edge `number` since power-on.
model::Picoseconds NicRtl::edge(std::uint64_t number) const {
  model::Picoseconds time = epoch_ + options_.clock_phase + (number + 1) * options_.clock_period;
  if (options_.clock_ppm != 0) {
    const double late = static_cast<double>((number + 1) * options_.clock_period) * options_.clock_ppm * 1e-6;
    time += static_cast<model::Picoseconds>(std::llround(late));
  }
  return time;
}

void NicRtl::cycle() {
  const bool in_reset = reset_left_ != 0;
  if (in_reset) --reset_left_;
  const model::Picoseconds now = model::now_ps();
  // Inputs settle half a cycle before the edge.
  nic_->cycle(in_reset, now - options_.clock_period / 2, now);
  ++cycles_;
  edge_event_.notify(model::to_sc_time(edge(cycles_) - now));
}

}  // namespace rnic::testbench
