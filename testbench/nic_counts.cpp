#include "testbench/nic_counts.hpp"

#include <verilated.h>

#include "Vrnic_top.h"
#include "Vrnic_top___024root.h"
#include "driver/generated/host_interface.hpp"

// Members of the generated class: rnic_top.u_host_if.u_regs.u_counter_bank.
#define BANK(name) rnic_top__DOT__u_host_if__DOT__u_regs__DOT__u_counter_bank__DOT__##name

namespace rnic::testbench {
namespace {

/// W of counter_bank.
constexpr unsigned kAccumulatorBits = 10;
constexpr std::uint64_t kOneBit = 1;

[[maybe_unused]] std::uint64_t accumulator(const EData* words, std::size_t counter) {
  std::uint64_t value = 0;
  for (unsigned bit = 0; bit < kAccumulatorBits; ++bit) {
    const std::size_t at = counter * kAccumulatorBits + bit;
    if ((words[at / 32] >> at % 32 & 1) != 0) value |= kOneBit << bit;
  }
  return value;
}

/// A count is what the RAM has, what the accumulator has, and what is on its way from the one to the other.
template <typename Root>
std::optional<std::vector<std::uint64_t>> read_bank(const Root& root) {
  if constexpr (requires { root.BANK(accumulator_q); }) {
    std::vector<std::uint64_t> counts(hw::kCounterNames.size());
    if (root.BANK(clearing_q)) return counts;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = root.BANK(u_counts__DOT__mem)[i] + accumulator(&root.BANK(accumulator_q)[0], i);
      if (root.BANK(update) && root.BANK(index) == i) counts[i] += root.BANK(taken_q);
    }
    return counts;
  } else {
    return {};
  }
}

}  // namespace

#undef BANK

std::optional<std::vector<std::uint64_t>> counts_of(const Vrnic_top& top) { return read_bank(*top.rootp); }

}  // namespace rnic::testbench
