#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbench/nic_signal.hpp"
#include "testbench/timeline/block_usage.hpp"
#include "testbench/timeline/nic_listener.hpp"

namespace rnic::testbench {

/// Reads what the blocks of a Verilated NIC do in a cycle, of the signals that rtl/rnic_observe.vlt opens: every
/// state_q, and valid and ready of every stream. For files that know Verilator.
class UsageSampler {
 public:
  /// Throws std::runtime_error when the model does not show the events that it counts. `usage` outlives it.
  UsageSampler(VerilatedContext& context, BlockUsage& usage);

  /// Of this cycle: counts into the usage, and tells `listener` the events that the NIC counts.
  void sample(NicListener& listener);

 private:
  struct Value {
    const void* at = nullptr;
    VerilatedVarType type{};
    [[nodiscard]] std::uint64_t get() const { return signal_value(at, type); }
  };
  struct Engine {
    Value state;
    std::uint64_t rest;
    std::uint64_t* busy;
  };
  struct Handshake {
    Value valid, ready;
    BlockUsage::Stream* count;
  };

  void add_scope(const std::string& scope, const VerilatedVarNameMap& variables);

  BlockUsage& usage_;
  std::vector<Engine> engines_;
  std::vector<Handshake> streams_;
  const EData* events_ = nullptr;
};

}  // namespace rnic::testbench
