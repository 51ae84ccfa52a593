#include "model/pcie_faults.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace rnic::model {
namespace {

constexpr std::array<const char*, kPcieFaults> kNames{
    "timeout",        "unsupported_request", "completer_abort",     "poisoned",      "unmap",           "late",
    "wrong_boundary", "wrong_byte_count",    "wrong_lower_address", "too_much_data", "too_little_data", "unknown_tag"};
constexpr std::array<const char*, kPcieAccesses> kAccessNames{"dma_read", "dma_write", "host_read", "host_write"};

void require_option(bool ok, const std::string& what) {
  if (!ok) throw std::invalid_argument(what);
}

bool go_together(PcieFault fault, PcieAccess access) {
  switch (fault) {
    case PcieFault::kPoisoned: return access == PcieAccess::kDmaRead || access == PcieAccess::kHostWrite;
    case PcieFault::kUnmap: return access == PcieAccess::kDmaRead || access == PcieAccess::kDmaWrite;
    case PcieFault::kLate:
    case PcieFault::kWrongBoundary:
    case PcieFault::kWrongByteCount:
    case PcieFault::kWrongLowerAddress:
    case PcieFault::kTooMuchData:
    case PcieFault::kTooLittleData:
    case PcieFault::kUnknownTag: return access == PcieAccess::kDmaRead;
    case PcieFault::kTimeout:
    case PcieFault::kUnsupportedRequest:
    case PcieFault::kCompleterAbort: break;
  }
  return access == PcieAccess::kDmaRead || access == PcieAccess::kHostRead;
}

bool is_time(double ns) { return ns >= 0 && ns <= 1e12; }

}  // namespace

const char* name(PcieFault fault) { return kNames.at(static_cast<std::size_t>(fault)); }
const char* name(PcieAccess access) { return kAccessNames.at(static_cast<std::size_t>(access)); }

void check(const PcieRule& rule) {
  require_option(go_together(rule.fault, rule.match.access),
                 std::string(name(rule.fault)) + " does not happen to a " + name(rule.match.access));
  require_option(rule.nth > 0, "nth is 0: the first access is number 1");
  require_option(rule.count > 0, "count is 0");
  require_option(rule.match.bytes > 0, "bytes is 0");
  require_option(
      rule.after_bytes == 0 || (rule.match.access == PcieAccess::kDmaRead && rule.fault != PcieFault::kUnmap),
      "after_bytes is for a dma_read that is not answered as it should be");
  require_option(is_time(rule.late_ns) && rule.late_ns > 0, "late_ns is not above 0 and up to 1e12");
  if (!rule.at_ns) return;
  require_option(is_time(*rule.at_ns), "at_ns is not from 0 to 1e12");
  require_option(rule.fault == PcieFault::kUnmap && rule.match.address, "at_ns is for unmap with an address");
}

void check(const PcieFaultOptions& options) {
  const std::pair<const char*, double> chances[] = {{"timeout", options.timeout},
                                                    {"unsupported_request", options.unsupported_request},
                                                    {"completer_abort", options.completer_abort},
                                                    {"poisoned", options.poisoned},
                                                    {"partial", options.partial},
                                                    {"back_pressure", options.back_pressure},
                                                    {"host_read_timeout", options.host_read_timeout},
                                                    {"host_write_poisoned", options.host_write_poisoned}};
  for (const auto& [what, chance] : chances)
    require_option(chance >= 0 && chance <= 1, std::string(what) + " is no probability");
  require_option(is_time(options.back_pressure_ns), "back_pressure_ns is not from 0 to 1e12");
  for (const auto& stall : options.stalls)
    require_option(is_time(stall.at_ns) && is_time(stall.for_ns), "a stall is not from 0 to 1e12 ns");
  for (const auto& rule : options.rules) check(rule);
}

}  // namespace rnic::model
