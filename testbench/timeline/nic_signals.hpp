#pragma once

#include <cstdint>
#include <memory>

#include "testbench/timeline/nic_listener.hpp"

class VerilatedContext;

namespace rnic::testbench {

class UsageSampler;

/// Reads signals of a Verilated NIC that rtl/rnic_observe.vlt opens, and tells a listener what they mean. It looks at
/// the model and changes nothing.
class NicSignals {
 public:
  /// Throws std::runtime_error when the model lacks one of the signals. `listener` outlives it.
  NicSignals(VerilatedContext& context, NicListener& listener);
  ~NicSignals();
  NicSignals(const NicSignals&) = delete;
  NicSignals& operator=(const NicSignals&) = delete;

  /// To be called once in each cycle out of reset, when all signals have settled and before the edge at
  /// `now_ps`.
  void sample(std::uint64_t now_ps);
  /// The NIC is in reset.
  void reset();

 private:
  struct Table;
  std::unique_ptr<Table> table_;
  std::unique_ptr<UsageSampler> usage_;  ///< Or null
  NicListener& listener_;
  bool in_reset_ = false;
};

}  // namespace rnic::testbench
