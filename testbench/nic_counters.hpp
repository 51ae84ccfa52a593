#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "testbench/endpoint.hpp"

namespace rnic::testbench {

/// All event counters of a NIC, in the order of hw::Counter.
using NicCounters = std::array<std::uint64_t, hw::kCounterNames.size()>;

/// What the NIC of `endpoint` has counted since its reset. Throws EndpointError.
NicCounters read_counters(Endpoint& endpoint);

/// What a NIC had to mend, or did not take. Nothing of it happens on a lossless wire between hosts that keep the rules.
struct CounterTrouble {
  const char* what;                 ///< "repaired", "dropped" or "refused"
  std::vector<std::string> counts;  ///< "COUNT NAME" of every counter of the kind that is not zero
};

/// The kinds of trouble that `counters` show; empty: none.
std::vector<CounterTrouble> trouble(const NicCounters& counters);

}  // namespace rnic::testbench
