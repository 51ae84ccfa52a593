#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rnic::model {

/// What can go wrong with a request on PCI Express (base specification 2.3.2, 2.7.2, 2.8), or with the memory behind
/// it.
enum class PcieFault : std::uint8_t {
  kTimeout,             ///< Never answered
  kUnsupportedRequest,  ///< Answered with Unsupported Request
  kCompleterAbort,      ///< Answered with Completer Abort
  kPoisoned,            ///< Its data is marked as bad (and is: all bits are inverted)
  kUnmap,               ///< The IOMMU loses its page before the access
  kLate,                ///< Answered, but only after `late_ns`
  // A completion is not what 2.2.9 and 2.3.1.1 ask for: one part of the answer, the others are as they should be.
  kWrongBoundary,      ///< It ends where no completion may: between two multiples of 64
  kWrongByteCount,     ///< It says that more is left, or less
  kWrongLowerAddress,  ///< It begins somewhere else
  kTooMuchData,        ///< It is the last, and goes on behind the end of the request
  kTooLittleData,      ///< It is the last by its byte count, and ends before
  kUnknownTag,         ///< It has the tag of no request
};
inline constexpr std::size_t kPcieFaults = 12;
/// As in scenario files: "timeout", "unsupported_request" and so on.
[[nodiscard]] const char* name(PcieFault fault);

/// Who accesses what, and how.
enum class PcieAccess : std::uint8_t {
  kDmaRead,    ///< The NIC reads host memory
  kDmaWrite,   ///< The NIC writes host memory; interrupts are not meant
  kHostRead,   ///< The host reads BAR0
  kHostWrite,  ///< The host writes BAR0
};
inline constexpr std::size_t kPcieAccesses = 4;
/// As in scenario files: "dma_read" and so on.
[[nodiscard]] const char* name(PcieAccess access);

/// Which accesses a rule is about, TLP by TLP.
struct PcieMatch {
  PcieAccess access = PcieAccess::kDmaRead;
  std::uint32_t min_bytes = 0;
  /// DMA: it touches one of the `bytes` from here on of host memory (virtual address). Host access: of BAR0.
  std::optional<std::uint64_t> address{};
  std::uint64_t bytes = 1;
  bool operator==(const PcieMatch&) const = default;
};

/// A fault for exact accesses: of those that match, number `nth` (from 1) and the `count` - 1 after it.
struct PcieRule {
  PcieFault fault = PcieFault::kCompleterAbort;
  PcieMatch match;
  std::uint64_t nth = 1;
  std::uint64_t count = 1;
  /// DMA read that is not unmapped: completions with so many bytes come first, as
  /// far as completions may be cut there.
  std::uint32_t after_bytes = 0;
  /// Late: by so much. Unless the NIC has given up by then it is a slow answer, and nothing is wrong.
  double late_ns = 200'000;
  /// Unmap: at this time after the reset, whatever is accessed. Needs an address; nth and count say nothing.
  std::optional<double> at_ns{};
};

/// Faults of one host's root complex. Each kind has a random generator of its own. A request that the IOMMU refuses
/// suffers nothing else; of several faults of one request, rules come first, then the order below.
///
///            time-out, Unsupported Request, Completer Abort   poisoned   unmap   late, and what follows it
/// DMA read                       yes                             yes      yes               yes
/// DMA write                                                               yes
/// host read                      yes
/// host write                                                     yes
///
/// Late and what follows it come by rule only.
struct PcieFaultOptions {
  /// Chance of each DMA read.
  double timeout = 0, unsupported_request = 0, completer_abort = 0, poisoned = 0;
  /// Chance of such a read that some of its completions come first.
  double partial = 0;
  /// Chance, after each request of the NIC, that it must wait before the next one: from 0 to back_pressure_ns.
  double back_pressure = 0;
  double back_pressure_ns = 500;
  /// Times after the reset in which the NIC may send no request.
  struct Window {
    double at_ns{}, for_ns{};
  };
  std::vector<Window> stalls{};
  double host_read_timeout = 0;    ///< Chance of each host read to get lost on its way to the NIC
  double host_write_poisoned = 0;  ///< Chance of each host write
  std::vector<PcieRule> rules{};
};

/// Throws std::invalid_argument, naming what is out of range or does not go together.
void check(const PcieRule& rule);
void check(const PcieFaultOptions& options);

/// How often each fault has hit, by PcieFault.
using PcieFaultCounts = std::array<std::uint64_t, kPcieFaults>;

}  // namespace rnic::model
