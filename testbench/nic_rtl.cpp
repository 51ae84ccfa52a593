#include "testbench/nic_rtl.hpp"

namespace rnic::testbench {

NicRtl::NicRtl(const sc_core::sc_module_name& name, model::PcieLink& pcie, model::EthernetLink& ethernet,
               const NicOptions& options)
    : sc_module(name), pcie_(pcie), ethernet_(ethernet), options_(options) {
  power_cycle(options.seed);
  SC_HAS_PROCESS(NicRtl);
  SC_METHOD(cycle);
}

void NicRtl::power_cycle(std::uint64_t seed) {
  nic_ = std::make_unique<VerilatedNic>(name(), pcie_, ethernet_, seed);
  cycles_ = 0;
  reset();
}

void NicRtl::cycle() {
  next_trigger(model::to_sc_time(options_.clock_period));
  const bool in_reset = reset_left_ != 0;
  if (in_reset) --reset_left_;
  const model::Picoseconds now = model::now_ps();
  // Inputs settle half a cycle before the edge; before the first one there is no such time.
  const model::Picoseconds settle = now < options_.clock_period / 2 ? now : now - options_.clock_period / 2;
  nic_->cycle(in_reset, settle, now);
  ++cycles_;
}

}  // namespace rnic::testbench
