#pragma once

#include <cstddef>
#include <cstdint>

#include "model/flow_control.hpp"
#include "model/pcie.hpp"
#include "model/pcie_faults.hpp"

namespace rnic::model {

struct RootComplexOptions {
  /// From the acceptance of a DMA read TLP to its completion on an idle link, less the time the packets take on the
  /// link. Each direction takes half of it, for every kind of TLP.
  double read_latency_ns = 500;
  /// Of each direction, in 10^9 bytes per second: PCI Express 4.0 x16 (16 GT/s, 128b/130b).
  double bandwidth_gbytes = 31.5;
  PcieConfig config;
  /// Completions are cut at multiples of it: 64 or 128 (base specification 2.3.1.1).
  std::size_t read_completion_boundary = 64;
  /// Chance that a completion ends at a random boundary and not at the last one that the maximum payload allows.
  double split_probability = 0;
  /// Chance that the memory answers a read late, by up to reorder_window_ns, and chance of each completion that it is
  /// not that of the oldest read. 0: completions come in the order of the reads.
  double reorder_probability = 0;
  double reorder_window_ns = 200;
  /// Chance that a DMA read waits in front of the memory, by up to reorder_window_ns: posted writes and other reads
  /// behind it pass (base specification 2.4.1, column B), and it sees the memory late.
  double pass_probability = 0;
  /// Every TLP takes up to this longer, as far as the order of its direction lets it.
  double jitter_ns = 0;
  /// A host read that is not answered in this time fails.
  double mmio_timeout_ns = 1'000'000;
  /// Of what the NIC sends. Posted credits are at least those of a maximum payload. A root complex advertises infinite
  /// completion credits to its NIC; a switch with others behind it need not (base specification 2.6.1).
  CreditOptions credits{};
  PcieFaultOptions faults{};
  std::uint64_t seed = 1;
};

/// Throws std::invalid_argument, naming the option, when one is out of range.
void check(const RootComplexOptions& options);

}  // namespace rnic::model
