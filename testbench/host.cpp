#include "testbench/host.hpp"

#include <string>

#include "driver/generated/host_interface.hpp"
#include "model/random.hpp"
#include "testbench/barrier_switch.hpp"
#include "testbench/nic_model.hpp"
#include "testbench/nic_rtl.hpp"

namespace rnic::testbench {
namespace {

std::uint64_t host_seed(std::uint64_t seed, std::size_t index) {
  return model::Random(seed, "host" + std::to_string(index)).next();
}

model::RootComplexOptions seeded(model::RootComplexOptions options, std::uint64_t seed) {
  options.seed = seed;
  return options;
}

model::MemoryOrderOptions seeded(model::MemoryOrderOptions options, std::uint64_t seed) {
  options.seed = seed;
  return options;
}

NicOptions seeded(NicOptions options, std::uint64_t seed) {
  options.seed = seed;
  return options;
}

std::unique_ptr<Nic> make_nic(model::PcieLink& pcie, model::EthernetLink& ethernet, const NicOptions& options) {
  if (options.kind == NicKind::kModel) return std::make_unique<NicModel>("nic", pcie, ethernet, options);
  return std::make_unique<NicRtl>("nic", pcie, ethernet, options);
}

}  // namespace

Host::Host(const sc_core::sc_module_name& name, std::size_t index, const HostOptions& options, std::uint64_t seed,
           model::EthernetLink& ethernet)
    : sc_module(name),
      index_(index),
      memory_(index, options.memory_bytes),
      iommu_(host_seed(seed, index), options.iova_bits),
      interrupts_(hw::kMsixVectors),
      memory_order_("memory_order", seeded(options.memory_order, host_seed(seed, index))),
      root_complex_("root_complex", iommu_, seeded(options.root_complex, host_seed(seed, index))),
      nic_(make_nic(root_complex_, ethernet, seeded(options.nic, host_seed(seed, index)))),
      device_("device", memory_, iommu_, interrupts_, host_seed(seed, index)),
      psn_near_wrap_(options.psn_near_wrap) {
  root_complex_.set_memory_order(memory_order_);
  device_.set_memory_order(memory_order_);
  device_.set_write_combining_split(options.write_combining_split);
  root_complex_.set_interrupt_handler([this](std::uint64_t, std::uint32_t data) {
    memory_order_.interrupt([this, data] {
      interrupts_.signal(data);
      device_.happen();
    });
  });
  root_complex_.set_memory_handler([this] { device_.happen(); });
  BarrierSwitch::instance().listen(this, [this](Barrier kind) {
    if (kind == Barrier::kDmaWrite || kind == Barrier::kWindowWrite) memory_order_.stores_barrier();
    if (kind == Barrier::kDmaRead) memory_order_.loads_barrier();
  });
  device_.mmio.bind(root_complex_.mmio);
  device_.set_function_reset(
      [this] {
        nic_->reset();
        root_complex_.reset_function();
      },
      nic_->reset_ns() + options.root_complex.read_latency_ns);
}

Host::~Host() { BarrierSwitch::instance().forget(this); }

void Host::reset(const HostOptions& options, std::uint64_t seed) {
  const std::uint64_t own = host_seed(seed, index_);
  iommu_.clear(own, options.iova_bits);
  memory_.clear();
  interrupts_.clear();
  memory_order_.reset(seeded(options.memory_order, own));
  root_complex_.reset(seeded(options.root_complex, own));
  nic_->power_cycle(seeded(options.nic, own));
  device_.reset(own);
  device_.set_write_combining_split(options.write_combining_split);
  psn_near_wrap_ = options.psn_near_wrap;
}

}  // namespace rnic::testbench
