#include "testbench/violations.hpp"

#include <fmt/format.h>

namespace rnic::testbench {

std::vector<ViolationNote> violations_of(Host& host, const model::WireStatistics& sent, const WireSpeed& speed) {
  std::vector<ViolationNote> notes;
  const auto note = [&](Violation violation, std::uint64_t count, const std::string& what) {
    if (count != 0) notes.push_back({violation, fmt::format("{}: {} {}", host.basename(), count, what)});
  };
  const auto& root = host.root_complex().statistics();
  const auto& iommu = host.iommu();
  const auto unmapped = host.root_complex().faults()[static_cast<std::size_t>(model::PcieFault::kUnmap)];
  // What a process has given up while the NIC was to use it is the process's fault.
  const std::uint64_t faults = iommu.fault_count() - iommu.gone_count();
  const bool trusted = !host.root_complex().driver_distrusted();
  if (faults != 0 && unmapped == 0 && trusted) {
    const auto& last = iommu.fault_log().back();
    note(Violation::kIommuFault, faults,
         fmt::format("DMA accesses to memory that the NIC may not have, the last a {} of {:#x}",
                     last.access == model::Iommu::Access::kWrite ? "write" : "read", last.iova));
  }
  note(Violation::kUnexpectedCompletion, root.unexpected_completions, "completions of no host read");
  if (trusted)
    note(Violation::kLateCompletion, root.late_completions, "completions of host reads that had been given up");
  note(Violation::kSpuriousInterrupt, host.interrupts().spurious(), "interrupt messages that name no vector");
  if (trusted)
    note(Violation::kForbiddenInterrupt, root.forbidden_interrupts,
         "interrupt messages while MSI-X is off or the function masked");
  if (speed.rate_gbps <= speed.port_gbps) note(Violation::kUnderrun, sent.underruns, "gaps inside frames");
  note(Violation::kBadFrame, sent.bad_frames, "frames that the NIC marked as bad");
  const auto& oddities = host.device().oddities();
  if (!oddities.empty()) {
    note(Violation::kOddity, oddities.size(),
         fmt::format("entries that the driver threw away, the last {}", oddities.back()));
  }
  return notes;
}

}  // namespace rnic::testbench
