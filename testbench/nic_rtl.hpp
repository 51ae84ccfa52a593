#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <systemc>

#include "model/ethernet.hpp"
#include "model/pcie.hpp"
#include "model/time.hpp"
#include "testbench/tlp_beats.hpp"

class VerilatedContext;
class VerilatedFstC;
class Vrnic_top;

namespace rnic::testbench {

struct NicOptions {
  model::Picoseconds clock_period = 4000;  ///< 250 MHz
  std::uint64_t reset_cycles = 16;
  std::uint64_t seed = 1;  ///< What registers and memories hold before reset
};

/// The Verilated NIC (rnic_top) in SystemC. One method runs each clock cycle; its links are called directly, with no SystemC
/// signal between.
///
/// At the edge at time t it takes what its links have for it by t, and what the NIC offered during the cycle that ends at t goes
/// out at t. An assertion of the RTL that fails, or a malformed TLP, stops the simulation: sc_start throws an sc_report that
/// names it.
class NicRtl : public sc_core::sc_module {
 public:
  NicRtl(const sc_core::sc_module_name& name, model::PcieLink& pcie, model::EthernetLink& ethernet, const NicOptions& options);
  ~NicRtl() override;

  /// Resets the NIC through its pin for reset_cycles, from the next clock edge on. What was half way through its ports is lost.
  void reset();
  /// A new chip, in reset: nothing is left of the old one, registers and memories hold what `seed` says. Ends the trace.
  void power_cycle(std::uint64_t seed);

  /// Records all signals to the FST file `path` from now on. Throws std::runtime_error when it cannot be written, or a trace
  /// is already on.
  void start_trace(const std::string& path);
  void stop_trace();

  /// Clock cycles since power-on.
  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }

 private:
  void build(std::uint64_t seed);
  void cycle();
  void drive();
  void drive_host_request();
  void drive_dma_completion();
  void drive_config();
  void sample();
  void sample_dma_request();
  void evaluate(bool clock, model::Picoseconds time);

  model::PcieLink& pcie_;
  model::EthernetLink& ethernet_;
  NicOptions options_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vrnic_top> top_;
  std::unique_ptr<VerilatedFstC> trace_;
  std::uint64_t cycles_ = 0;
  std::uint64_t reset_left_;
  model::PcieConfig config_;
  BeatCutter host_request_;
  BeatCutter dma_completion_;
  BeatJoiner dma_data_;
  model::DmaRequest dma_request_;  ///< Whose beats are being joined
};

}  // namespace rnic::testbench
