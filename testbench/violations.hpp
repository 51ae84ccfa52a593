#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/wire.hpp"
#include "testbench/host.hpp"

namespace rnic::testbench {

/// What no sound NIC does under a sound driver, whatever becomes of the requests: no application need ever notice it.
enum class Violation : std::uint8_t {
  kIommuFault,            ///< DMA to memory that the NIC may not have
  kUnexpectedCompletion,  ///< A completion of no host read
  kLateCompletion,        ///< A completion of a host read that was given up
  kSpuriousInterrupt,     ///< A message that names no vector
  kForbiddenInterrupt,    ///< A message while MSI-X is off or the function masked
  kUnderrun,              ///< A gap inside a frame, on a wire that is no faster than the NIC's port
  kBadFrame,              ///< A frame that the NIC itself marks as bad
  kOddity,                ///< What the driver met and threw away: a CQE or EQE that nobody waits for
  kWireRule,              ///< A frame that the InfiniBand specification forbids, in itself or there (WireWatch)
};
inline constexpr std::size_t kViolations = 9;

/// A run that was otherwise right met violations that were not declared.
class ViolationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How fast the wire is, and a NIC at its slowest.
struct WireSpeed {
  double rate_gbps, port_gbps;
};

struct ViolationNote {
  Violation violation;
  std::string text;  ///< Which host, how often, the newest of them
};

/// What host and port have met since their reset. IOMMU faults are none on a host whose pages were unmapped on purpose
/// (model::PcieFault::kUnmap).
[[nodiscard]] std::vector<ViolationNote> violations_of(Host& host, const model::WireStatistics& sent,
                                                       const WireSpeed& speed);

}  // namespace rnic::testbench
