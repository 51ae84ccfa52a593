#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/pcie.hpp"
#include "model/pcie_faults.hpp"
#include "model/random.hpp"
#include "model/time.hpp"

namespace rnic::model {

/// Decides which faults hit the accesses of one host.
class PcieFaultInjector {
 public:
  /// `epoch`: the time from which times of the options count. Throws std::invalid_argument when an option is out of
  /// range.
  PcieFaultInjector(const PcieFaultOptions& options, std::uint64_t seed, Picoseconds epoch);

  /// Adds a rule, which counts accesses from now on. Throws as the constructor.
  void arm(const PcieRule& rule);
  /// The rules about just these accesses go.
  void disarm(const PcieMatch& match);

  struct Hit {
    PcieFault fault;
    std::uint32_t after_bytes;
    double late_ns = 0;
  };
  struct Fate {
    std::optional<Hit> hit;  ///< Anything but kUnmap
    bool unmap = false;      ///< The page is gone first
  };
  /// The fate of the next access. `range`: where it is, for rules with an address; `unknown_address` when nobody knows.
  /// Hits count only when `count` is called for them.
  [[nodiscard]] Fate judge(PcieAccess access, const ByteRange& range, bool unknown_address = false);
  void count(PcieFault fault) { ++counts_[static_cast<std::size_t>(fault)]; }
  /// Host addresses whose pages are to be unmapped by `now`; each comes once.
  [[nodiscard]] std::vector<std::uint64_t> due_unmaps(Picoseconds now);

  /// How long the NIC must wait after a request, from 0.
  [[nodiscard]] Picoseconds pause();
  /// True in a time of the options in which the NIC may send nothing.
  [[nodiscard]] bool stalled(Picoseconds now) const;

  [[nodiscard]] const PcieFaultCounts& counts() const { return counts_; }

 private:
  struct Rule {
    PcieRule rule;
    std::uint64_t seen = 0;  ///< Accesses that matched
  };
  struct Window {
    Picoseconds start, end;
  };
  struct Chance {
    PcieAccess access;
    PcieFault fault;
    double probability;
    Random random;
  };

  PcieFaultOptions options_;
  Picoseconds epoch_;
  std::vector<Rule> rules_;
  std::vector<PcieRule> timed_;  ///< Unmap at a time; not done yet
  std::vector<Window> windows_;
  std::vector<Chance> chances_;
  Random pause_;
  PcieFaultCounts counts_{};
};

}  // namespace rnic::model
