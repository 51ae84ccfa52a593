#include "testbench/nic_counters.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace rnic::testbench {

NicCounters read_counters(Endpoint& endpoint) {
  NicCounters counters{};
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const auto count = endpoint.kernel().counter(static_cast<hw::Counter>(i));
    if (!count.ok()) throw EndpointError(fmt::format("counter {} cannot be read", hw::kCounterNames[i]));
    counters[i] = count.value();
  }
  return counters;
}

std::vector<CounterTrouble> trouble(const NicCounters& counters) {
  using C = hw::Counter;
  static const std::initializer_list<std::pair<const char*, std::vector<C>>> kKinds = {
      {"repaired",
       {C::kSequenceRetries, C::kAckTimeouts, C::kRnrRetries, C::kTxNaks, C::kTxRnrNaks, C::kRxNaks, C::kRxGaps,
        C::kRxDuplicate, C::kRxPsnError, C::kRxRnr, C::kRxAtomicRepeats}},
      {"dropped",
       {C::kTxDropped, C::kRxMalformed, C::kRxBadIcrc, C::kRxOverflow, C::kRxNoQp, C::kRxBadState, C::kRxBadPeer,
        C::kRxBadQkey, C::kRxBrokenMessages, C::kRxNoRoom, C::kRxStrayResponses, C::kRxCongestion, C::kRxEthernetLost,
        C::kLoopLost, C::kCqOverruns, C::kEqOverruns}},
      {"refused",
       {C::kRxInvalidRequest, C::kRxForbidden, C::kRxSrqErrors, C::kRxBadResponses, C::kRxPlaceFaults, C::kXlateFaults,
        C::kDmaReadErrors, C::kDmaReadTimeouts, C::kHostUnsupported, C::kDoorbellsRefused, C::kWqeErrors,
        C::kMemoryOpsRefused, C::kRetriesExhausted, C::kFlushedWqes}}};
  std::vector<CounterTrouble> found;
  for (const auto& [what, kind] : kKinds) {
    CounterTrouble trouble{what, {}};
    for (const auto counter : kind) {
      const auto i = static_cast<std::size_t>(counter);
      if (counters[i] != 0) trouble.counts.push_back(fmt::format("{} {}", counters[i], hw::kCounterNames[i]));
    }
    if (!trouble.counts.empty()) found.push_back(std::move(trouble));
  }
  return found;
}

}  // namespace rnic::testbench
