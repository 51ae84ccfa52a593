#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/ethernet.hpp"
#include "model/pcie.hpp"
#include "model/time.hpp"
#include "testbench/verilated_nic.hpp"

namespace rnic::testbench {

/// What a host's NIC is.
enum class NicKind : std::uint8_t {
  kRtl,    ///< The Verilated NIC
  kModel,  ///< The reference NIC (docs/reference_nic.md)
};

struct NicOptions {
  NicKind kind = NicKind::kRtl;
  model::Picoseconds clock_period = 4000;  ///< 250 MHz
  double clock_ppm = 0;                    ///< The clock is so much slower than clock_period says
  model::Picoseconds clock_phase = 0;      ///< Of the first edge, below clock_period
  std::uint64_t reset_cycles = 16;
  std::uint64_t seed = 1;  ///< What registers and memories hold before reset
  ClockOptions clock{};
};

/// A NIC in SystemC between its two links, which it calls directly.
class Nic {
 public:
  virtual ~Nic() = default;

  /// Resets the NIC through its pin for reset_cycles, from the next clock edge on.
  virtual void reset() = 0;
  [[nodiscard]] virtual std::uint64_t reset_ns() const = 0;
  /// A new chip, in reset, with a clock that begins now: nothing is left of the old one. Ends the trace.
  virtual void power_cycle(const NicOptions& options) = 0;

  /// As VerilatedNic; a NIC without waves does nothing.
  virtual void start_trace(const std::string& path, const TraceRange& range = {}) = 0;
  virtual void flush_trace() = 0;
  virtual void stop_trace() = 0;
  /// As VerilatedNic; also of chips that a power_cycle brings. The reference NIC has no blocks: it
  /// reports requests, packets, completions and counters.
  virtual void listen(NicListener* listener) = 0;
  virtual void finish_edge() = 0;

  [[nodiscard]] virtual const PortActivity& activity() const = 0;
  /// What holds, a line each.
  [[nodiscard]] virtual std::vector<std::string> state() = 0;
  /// All event counters as they are now, in the order of hw::Counter: of one moment, because no simulated time passes.
  /// Nothing: a NIC that does not show them.
  [[nodiscard]] virtual std::optional<std::vector<std::uint64_t>> counts() = 0;
  /// Nothing happens in it before a deadline or an arrival.
  [[nodiscard]] virtual bool asleep() const = 0;
  /// Clock cycles since power-on, those included in which the clock stood still.
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;
  /// Those in which something was done.
  [[nodiscard]] virtual std::uint64_t clocked() const = 0;
};

}  // namespace rnic::testbench
