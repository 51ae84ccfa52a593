#pragma once

#include <cstddef>
#include <cstdint>
#include <systemc>

#include "model/ethernet.hpp"
#include "model/host_memory.hpp"
#include "model/interrupt_controller.hpp"
#include "model/iommu.hpp"
#include "model/root_complex.hpp"
#include "testbench/nic_rtl.hpp"
#include "testbench/sim_device.hpp"

namespace rnic::testbench {

struct HostOptions {
  std::size_t memory_bytes = model::HostMemory::kDefaultBytes;
  model::RootComplexOptions root_complex;
  NicOptions nic;
};

/// One machine: memory behind an IOMMU, a PCI Express root complex, a NIC, and the device that its driver uses.
class Host : public sc_core::sc_module {
 public:
  /// Seeds in `options` are replaced by ones derived from `seed` and `index`. Throws as its parts do.
  Host(const sc_core::sc_module_name& name, std::size_t index, const HostOptions& options, std::uint64_t seed,
       model::EthernetLink& ethernet);

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] SimDevice& device() { return device_; }
  [[nodiscard]] model::HostMemory& memory() { return memory_; }
  [[nodiscard]] model::Iommu& iommu() { return iommu_; }
  [[nodiscard]] model::InterruptController& interrupts() { return interrupts_; }
  [[nodiscard]] model::RootComplex& root_complex() { return root_complex_; }
  [[nodiscard]] NicRtl& nic() { return nic_; }

  /// As after power-on, with the root complex options and the seed given: memory free, nothing mapped, NIC in reset.
  /// Memory size, clock and reset length stay.
  void reset(const HostOptions& options, std::uint64_t seed);

 private:
  std::size_t index_;
  model::HostMemory memory_;
  model::Iommu iommu_;
  model::InterruptController interrupts_;
  model::RootComplex root_complex_;
  NicRtl nic_;
  SimDevice device_;
};

}  // namespace rnic::testbench
