#include "model/pcie_fault_injector.hpp"

#include <algorithm>
#include <string>

namespace rnic::model {
namespace {

bool matches(const PcieMatch& match, PcieAccess access, const ByteRange& range, bool unknown_address) {
  if (match.access != access || range.length < match.min_bytes) return false;
  if (!match.address) return true;
  return !unknown_address &&
         (*match.address - range.address < range.length || range.address - *match.address < match.bytes);
}

}  // namespace

PcieFaultInjector::PcieFaultInjector(const PcieFaultOptions& options, std::uint64_t seed, Picoseconds epoch)
    : options_((check(options), options)), epoch_(epoch), pause_(seed, "pcie/back_pressure") {
  const auto add = [&](PcieAccess access, PcieFault fault, double probability) {
    chances_.push_back(
        {access, fault, probability, Random(seed, std::string("pcie/") + name(access) + '/' + name(fault))});
  };
  add(PcieAccess::kDmaRead, PcieFault::kTimeout, options.timeout);
  add(PcieAccess::kDmaRead, PcieFault::kUnsupportedRequest, options.unsupported_request);
  add(PcieAccess::kDmaRead, PcieFault::kCompleterAbort, options.completer_abort);
  add(PcieAccess::kDmaRead, PcieFault::kPoisoned, options.poisoned);
  add(PcieAccess::kHostRead, PcieFault::kTimeout, options.host_read_timeout);
  add(PcieAccess::kHostWrite, PcieFault::kPoisoned, options.host_write_poisoned);
  for (const auto& stall : options.stalls) {
    const Picoseconds start = epoch + from_ns(stall.at_ns);
    windows_.push_back({start, start + from_ns(stall.for_ns)});
  }
  for (const auto& rule : options.rules) arm(rule);
}

void PcieFaultInjector::arm(const PcieRule& rule) {
  check(rule);
  if (rule.at_ns) {
    timed_.push_back(rule);
  } else {
    rules_.push_back({rule});
  }
}

void PcieFaultInjector::disarm(const PcieMatch& match) {
  std::erase_if(rules_, [&](const Rule& one) { return one.rule.match == match; });
}

PcieFaultInjector::Fate PcieFaultInjector::judge(PcieAccess access, const ByteRange& range, bool unknown_address) {
  Fate fate;
  for (auto& [rule, seen] : rules_) {
    if (!matches(rule.match, access, range, unknown_address)) continue;
    ++seen;
    if (seen < rule.nth || seen - rule.nth >= rule.count) continue;
    if (rule.fault == PcieFault::kUnmap) {
      fate.unmap = true;
    } else if (!fate.hit) {
      fate.hit = {rule.fault, rule.after_bytes, rule.late_ns};
    }
  }
  for (auto& chance : chances_) {
    if (chance.access != access || !chance.random.chance(chance.probability)) continue;
    const bool partial = access == PcieAccess::kDmaRead && chance.random.chance(options_.partial);
    const auto after = partial ? static_cast<std::uint32_t>(chance.random.below(range.length)) : 0;
    if (!fate.hit) fate.hit = {chance.fault, after};
  }
  return fate;
}

std::vector<std::uint64_t> PcieFaultInjector::due_unmaps(Picoseconds now) {
  std::vector<std::uint64_t> due;
  std::erase_if(timed_, [&](const PcieRule& rule) {
    if (epoch_ + from_ns(*rule.at_ns) > now) return false;
    due.push_back(*rule.match.address);
    return true;
  });
  return due;
}

Picoseconds PcieFaultInjector::pause() {
  if (!pause_.chance(options_.back_pressure)) return 0;
  return pause_.below(from_ns(options_.back_pressure_ns) + 1);
}

bool PcieFaultInjector::stalled(Picoseconds now) const {
  return std::any_of(windows_.begin(), windows_.end(),
                     [&](const Window& window) { return now >= window.start && now < window.end; });
}

}  // namespace rnic::model
