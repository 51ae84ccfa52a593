#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testbench/tool/bench_sweep.hpp"

namespace rnic::testbench {

/// A row for each measurement, and what bounds it.
void print_sweep(const SweepOptions& sweep, const std::vector<SweepRow>& rows);
/// {"sweep", "axis", "pcie", "link_gbps", "points": [{"at", "write": {...}, "write_both_ways": {...}, "read": ...}]}.
/// Rates and goodput are those of each direction. `pcie`: what the machines' is.
nlohmann::ordered_json sweep_json(const SweepOptions& sweep, const std::vector<SweepRow>& rows,
                                  const WorldOptions& options, const std::string& pcie);

}  // namespace rnic::testbench
