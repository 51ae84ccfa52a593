#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/ethernet.hpp"
#include "model/pcie.hpp"
#include "testbench/tlp_beats.hpp"

class VerilatedContext;
class VerilatedFstC;
class Vrnic_top;

namespace rnic::testbench {

/// When something last passed the NIC's ports, in clock cycles since power-on. For latencies in cycles.
struct PortActivity {
  std::uint64_t last_host_request = 0;  ///< Last beat of a host request accepted
  std::uint64_t last_frame_start = 0;   ///< First beat of a frame handed to the wire
};

/// What of a run a trace holds.
struct TraceRange {
  std::uint64_t from_ns = 0;  ///< Simulated time since power-on
  std::uint64_t to_ns = ~0ULL;
  std::string scope;   ///< Below rnic_top: "u_send_side.u_tx_path". Empty: everything
  unsigned depth = 0;  ///< Of the scope and what is in it, so many levels. 0: all
};

/// TraceRange::scope is none of the NIC's.
class NoSuchScope : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The Verilated NIC (rnic_top) with its links, one clock cycle at a time. Knows nothing of SystemC, whose headers and
/// those of Verilator do not go together in one file.
class VerilatedNic {
 public:
  /// A new chip, in reset; registers and memories hold what `seed` says.
  VerilatedNic(std::string name, model::PcieLink& pcie, model::EthernetLink& ethernet, std::uint64_t seed);
  ~VerilatedNic();
  VerilatedNic(const VerilatedNic&) = delete;
  VerilatedNic& operator=(const VerilatedNic&) = delete;

  /// One cycle: takes what the links have, lets it settle, hands over what the NIC offers, and makes the clock edge. In
  /// reset nothing moves, and what was half way through a port is lost. Times, in picoseconds, are for the trace.
  /// Throws std::runtime_error when an assertion of the RTL fails, model::PcieProtocolError for a malformed TLP.
  void cycle(bool reset, std::uint64_t settle_time, std::uint64_t edge_time);

  /// Records signals to the FST file `path` from now on, as far as `range` says; `power_on` is its time 0, picoseconds.
  /// Throws std::runtime_error when the file cannot be written, or a trace is already on; NoSuchScope.
  void start_trace(const std::string& path, const TraceRange& range = {}, std::uint64_t power_on = 0);
  /// Writes what viewers open beside the file, too (write_wave_views).
  void stop_trace();

  [[nodiscard]] const PortActivity& activity() const { return activity_; }
  /// What holds: busy_signals, and the ports of the NIC where one side waits for the other.
  [[nodiscard]] std::vector<std::string> state() const;

 private:
  void open_trace(const std::string& path, const TraceRange& range);
  void hold_reset();
  void evaluate(bool clock, std::uint64_t time);
  void drive();
  void drive_flow_control();
  void drive_config();
  void drive_host_request();
  void drive_dma_completion();
  void sample();
  void sample_dma_request();

  std::string name_;
  model::PcieLink& pcie_;
  model::EthernetLink& ethernet_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vrnic_top> top_;
  std::unique_ptr<VerilatedFstC> trace_;
  std::string trace_path_;
  std::uint64_t trace_from_ = 0, trace_to_ = 0;  ///< Picoseconds
  std::uint64_t traced_time_ = 0;                ///< Of the newest entry; a time can be recorded once
  std::uint64_t cycles_ = 0;
  PortActivity activity_;
  bool in_frame_ = false;
  std::optional<model::PcieConfig> config_;
  BeatCutter host_request_;
  BeatCutter dma_completion_;
  BeatJoiner host_completion_;
  BeatJoiner dma_data_;
  model::DmaRequest dma_request_;  ///< Whose beats are being joined
};

}  // namespace rnic::testbench
