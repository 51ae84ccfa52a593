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
#include "testbench/worker_thread.hpp"

class VerilatedContext;
class VerilatedFstC;
class Vrnic_top;

namespace rnic::testbench {

class NicListener;
class NicSignals;
class StateCheck;

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
  /// Where viewers open the trace, simulated time since power-on. Nothing: at the first work request that it holds, or
  /// where an assertion of the RTL fails.
  std::optional<std::uint64_t> mark_ns;
};

/// TraceRange::scope is none of the NIC's.
class NoSuchScope : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// How a NIC is clocked. Nothing in the results depends on it.
struct ClockOptions {
  bool own_thread = false;  ///< What follows an edge is computed in a thread of its own
  bool gating = false;      ///< A clock stands still where nothing can change: of a room, and of a NIC that is quiet
  bool check_rest = false;  ///< Throws std::runtime_error where something could have. Slow
};

/// The Verilated NIC (rnic_top) with its links, one clock cycle at a time. Knows nothing of SystemC, whose headers and
/// those of Verilator do not go together in one file.
///
/// Nine tenths of the work of a cycle follow its edge, and nobody sees what they make before the next cycle: a NIC with
/// a thread of its own does them there while the rest of the world goes on. What it does is the same.
class VerilatedNic {
 public:
  /// A new chip, in reset; registers and memories hold what `seed` says.
  VerilatedNic(std::string name, model::PcieLink& pcie, model::EthernetLink& ethernet, std::uint64_t seed,
               const ClockOptions& clock);
  ~VerilatedNic();
  VerilatedNic(const VerilatedNic&) = delete;
  VerilatedNic& operator=(const VerilatedNic&) = delete;

  /// One cycle: takes what the links have, lets it settle, hands over what the NIC offers, and makes the clock edge. In
  /// reset nothing moves, and what was half way through a port is lost. Times, in picoseconds, are for the trace.
  /// Throws std::runtime_error when an assertion of the RTL fails, at the edge before at the earliest;
  /// model::PcieProtocolError for a malformed TLP.
  /// `number`: of the cycle, which is the NIC's time. A NIC that is quiet need not see the next ones.
  void cycle(std::uint64_t number, bool reset, std::uint64_t settle_time, std::uint64_t edge_time);
  /// Without an input nothing happens in the NIC before this cycle, as of the last one. Nothing: it is not quiet.
  [[nodiscard]] std::optional<std::uint64_t> quiet_until() const { return quiet_until_; }
  static constexpr std::uint64_t kNever = ~0ULL;
  /// Waits for what follows the last edge. Throws std::runtime_error when an assertion of the RTL has failed there.
  void finish_edge();

  /// Records signals to the FST file `path` from now on, as far as `range` says; `power_on` is its time 0, picoseconds.
  /// Throws std::runtime_error when the file cannot be written, or a trace is already on; NoSuchScope.
  void start_trace(const std::string& path, const TraceRange& range = {}, std::uint64_t power_on = 0);
  /// What the trace has at `now`, picoseconds, can be read while it goes on, with what viewers open beside it.
  void flush_trace(std::uint64_t now);
  /// The trace ends at `now`, picoseconds. Writes what viewers open beside the file, too (write_wave_views).
  void stop_trace(std::uint64_t now);
  /// Tells `listener` what happens in each cycle; null: nobody. Throws as NicSignals.
  void listen(NicListener* listener);

  [[nodiscard]] const PortActivity& activity() const { return activity_; }
  /// What holds: busy_signals, and the ports of the NIC where one side waits for the other.
  [[nodiscard]] std::vector<std::string> state();
  /// As counts_of.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> counts();

 private:
  void open_trace(const std::string& path, const TraceRange& range);
  void record(std::uint64_t time);
  void write_views() const;
  void close_trace();
  void hold_reset();
  void evaluate(bool clock, std::uint64_t time);
  void join_edge();
  void sample_quiet(bool was_quiet);
  void make_edge();
  void throw_if_restless(const std::vector<std::string>& signals, const char* what) const;
  void throw_if_failed();
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
  std::unique_ptr<NicSignals> signals_;  ///< If anybody listens
  std::string trace_path_;
  std::uint64_t trace_from_ = 0, trace_to_ = 0;  ///< Picoseconds
  std::uint64_t traced_time_ = 0;                ///< Of the newest entry; a time can be recorded once
  std::optional<std::uint64_t> trace_mark_;      ///< TraceRange::mark_ns, picoseconds
  std::uint64_t first_request_ = 0;  ///< Doorbell of a work request that is traced, picoseconds; 0: none yet
  std::uint64_t cycle_ = 0;
  std::optional<std::uint64_t> quiet_until_;
  PortActivity activity_;
  bool in_frame_ = false;
  std::optional<model::PcieConfig> config_;
  BeatCutter host_request_;
  BeatCutter dma_completion_;
  BeatJoiner host_completion_;
  BeatJoiner dma_data_;
  model::DmaRequest dma_request_;            ///< Whose beats are being joined
  std::unique_ptr<StateCheck> state_check_;  ///< If rest is checked
  std::uint64_t quiet_checked_at_ = 0;
  std::vector<std::string> restless_;  ///< What the last edge should have changed
  std::uint64_t edge_time_ = 0;
  std::optional<std::uint64_t> failed_at_;   ///< Time of the assertion that failed
  std::optional<WorkerThread> edge_thread_;  ///< The last member: it must end before the rest does
};

}  // namespace rnic::testbench
