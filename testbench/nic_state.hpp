#pragma once

#include <string>
#include <vector>

class VerilatedContext;

namespace rnic::testbench {

/// What the engines of a Verilated NIC do, of the signals that rtl/rnic_observe.vlt opens: a line "scope.state_q =
/// value" for each state machine that does not rest (in its first state, but for those that start by clearing a
/// memory), and a line "scope.name: valid, not ready" for each stream that waits for its receiver; with several
/// clients, which of them (a bit each). Scopes are named from rnic_top on, and sorted.
[[nodiscard]] std::vector<std::string> busy_signals(VerilatedContext& context);

}  // namespace rnic::testbench
