#include "model/wire_faults.hpp"

#include <stdexcept>
#include <string>

namespace rnic::model {
namespace {

constexpr std::array<const char*, kWireFaults> kNames{"drop",  "duplicate", "reorder", "corrupt",
                                                      "delay", "truncate",  "ecn"};

void require(bool ok, const std::string& what) {
  if (!ok) throw std::invalid_argument(what);
}

}  // namespace

const char* name(WireFault fault) { return kNames.at(static_cast<std::size_t>(fault)); }

double WireFaultOptions::chance(WireFault fault) const {
  switch (fault) {
    case WireFault::kDrop: return drop;
    case WireFault::kDuplicate: return duplicate;
    case WireFault::kReorder: return reorder;
    case WireFault::kCorrupt: return corrupt;
    case WireFault::kDelay: return delay;
    case WireFault::kTruncate: return truncate;
    case WireFault::kEcn: break;
  }
  return ecn;
}

void check(const WireFaultParameters& parameters) {
  require(parameters.reorder_frames > 0, "reorder_frames is 0");
  require(parameters.reorder_hold_ns > 0 && parameters.reorder_hold_ns <= 1e12,
          "reorder_hold_ns is not above 0 and at most 1e12");
  require(parameters.duplicate_hold_ns > 0 && parameters.duplicate_hold_ns <= 1e12,
          "duplicate_hold_ns is not above 0 and at most 1e12");
  require(parameters.corrupt_bits > 0 && parameters.corrupt_bits <= 1024, "corrupt_bits is not from 1 to 1024");
  require(parameters.delay_ns >= 0 && parameters.delay_ns <= 1e12, "delay_ns is not from 0 to 1e12");
  require(!parameters.truncate_bytes || *parameters.truncate_bytes > 0, "truncate_bytes is 0");
}

void check(const WireRule& rule) {
  require(rule.nth > 0, "nth is 0: the first frame is number 1");
  require(rule.count > 0, "count is 0");
  require(rule.probability >= 0 && rule.probability <= 1, "probability is no probability");
  require(!rule.match.dest_qpn || *rule.match.dest_qpn < 1u << 24, "dest_qpn has more than 24 bits");
  require(!rule.match.psn || *rule.match.psn < 1u << 24, "psn has more than 24 bits");
  check(rule.parameters);
}

void check(const WireFaultOptions& options) {
  for (std::size_t i = 0; i < kWireFaults; ++i) {
    const double chance = options.chance(static_cast<WireFault>(i));
    require(chance >= 0 && chance <= 1, std::string(kNames[i]) + " is no probability");
  }
  check(options.parameters);
  for (const auto& rule : options.rules) check(rule);
}

}  // namespace rnic::model
