#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <systemc>

#include "model/ethernet.hpp"
#include "model/host_memory.hpp"
#include "model/interrupt_controller.hpp"
#include "model/iommu.hpp"
#include "model/memory_order.hpp"
#include "model/root_complex.hpp"
#include "testbench/nic.hpp"
#include "testbench/sim_device.hpp"

namespace rnic::testbench {

struct HostOptions {
  std::size_t memory_bytes = model::HostMemory::kDefaultBytes;
  model::RootComplexOptions root_complex;
  NicOptions nic;
  unsigned iova_bits = model::Iommu::kAddressBits;  ///< Width of device addresses, 34 to 64
  /// Chance that the processor flushes a write-combining buffer in pieces (SimDevice::write_burst64).
  double write_combining_split = 0;
  /// Chance that a first PSN is one of the last 64 before 2^24, so that it wraps early.
  double psn_near_wrap = 0;
  model::MemoryOrderOptions memory_order;
};

/// One machine: memory behind an IOMMU, a PCI Express root complex, a NIC, and the device that its driver uses.
///
/// With a weak memory order the driver must be compiled with RNIC_BARRIER_HOOK (driver/barrier_hook.hpp), or no barrier
/// has an effect. Nobody knows which host passes a barrier, so each takes it for its own; what the driver of the other
/// has stored since then is not covered by it.
class Host : public sc_core::sc_module {
 public:
  /// Seeds in `options` are replaced by ones derived from `seed` and `index`. Throws as its parts do.
  Host(const sc_core::sc_module_name& name, std::size_t index, const HostOptions& options, std::uint64_t seed,
       model::EthernetLink& ethernet);
  ~Host() override;

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] SimDevice& device() { return device_; }
  [[nodiscard]] model::HostMemory& memory() { return memory_; }
  [[nodiscard]] model::Iommu& iommu() { return iommu_; }
  [[nodiscard]] model::InterruptController& interrupts() { return interrupts_; }
  [[nodiscard]] model::RootComplex& root_complex() { return root_complex_; }
  [[nodiscard]] Nic& nic() { return *nic_; }

  /// What the NIC and its driver do with memory goes through `witness`, which outlives the host. Null: by itself.
  void set_memory_witness(model::MemoryWitness* witness) {
    root_complex_.set_memory_witness(witness);
    device_.set_memory_witness(witness);
  }

  /// Chance that a first PSN is near its wrap, for whoever draws one.
  [[nodiscard]] double psn_near_wrap() const { return psn_near_wrap_; }

  /// As after power-on, with the options and the seed given: memory free, nothing mapped, NIC in reset. The memory size
  /// stays, and so does the kind of the NIC.
  void reset(const HostOptions& options, std::uint64_t seed);

 private:
  std::size_t index_;
  model::HostMemory memory_;
  model::Iommu iommu_;
  model::InterruptController interrupts_;
  model::MemoryOrder memory_order_;
  model::RootComplex root_complex_;
  std::unique_ptr<Nic> nic_;
  SimDevice device_;
  double psn_near_wrap_;
};

}  // namespace rnic::testbench
