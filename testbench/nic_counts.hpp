#pragma once

#include <cstdint>
#include <optional>
#include <vector>

class Vrnic_top;

namespace rnic::testbench {

/// The event counters of a Verilated NIC as they are after its last clock edge, in the order of hw::Counter. They are
/// read past its registers, so that no simulated time passes between one and the next. Nothing: the NIC of another
/// design, which has no counter_bank where rnic_top has it.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> counts_of(const Vrnic_top& top);

}  // namespace rnic::testbench
