#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <vector>

#include "model/ethernet.hpp"
#include "model/pcie.hpp"
#include "model/time.hpp"
#include "model/timed_event.hpp"
#include "testbench/edge_clock.hpp"
#include "testbench/nic.hpp"

namespace rnic::testbench {

/// The Verilated NIC in SystemC. One method runs each clock cycle; the links are called directly, with no SystemC
/// signal between.
///
/// It is the NIC's clock controller, too: once the NIC has been quiet for a while there is no cycle until its deadline,
/// the next arrival on a link, or a change that it sees at once. Nothing in the results depends on it.
///
/// At the edge at time t it takes what its links have for it by t, and what the NIC offered during the cycle that ends
/// at t goes out at t. An assertion of the RTL that fails, or a malformed TLP, stops the simulation: sc_start throws an
/// sc_report that names it, or finish_edge does after the last cycle.
class NicRtl : public sc_core::sc_module, public Nic {
 public:
  NicRtl(const sc_core::sc_module_name& name, model::PcieLink& pcie, model::EthernetLink& ethernet,
         const NicOptions& options);
  ~NicRtl() override { stop_trace(); }

  void reset() override {
    reset_left_ = options_.reset_cycles;
    wake(true);
  }
  [[nodiscard]] std::uint64_t reset_ns() const override {
    return (options_.reset_cycles + 1) * options_.clock_period / model::kPicosecondsPerNanosecond + 1;
  }
  /// Registers and memories hold what the options' seed says.
  void power_cycle(const NicOptions& options) override;

  /// As VerilatedNic.
  void start_trace(const std::string& path, const TraceRange& range = {}) override {
    nic_->start_trace(path, range, edges_.epoch);
  }
  void flush_trace() override { nic_->flush_trace(model::now_ps()); }
  void stop_trace() override { nic_->stop_trace(model::now_ps()); }
  /// As VerilatedNic; also of chips that a power_cycle brings.
  void listen(NicListener* listener) override {
    listener_ = listener;
    nic_->listen(listener);
  }

  void finish_edge() override { nic_->finish_edge(); }
  [[nodiscard]] const PortActivity& activity() const override { return nic_->activity(); }
  [[nodiscard]] std::vector<std::string> state() override { return nic_->state(); }
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> counts() override { return nic_->counts(); }

  /// The clock stands still.
  [[nodiscard]] bool asleep() const override { return asleep_; }
  /// Clock cycles since power-on, those included in which the clock stood still.
  [[nodiscard]] std::uint64_t cycles() const override;
  /// Those that the NIC was clocked for.
  [[nodiscard]] std::uint64_t clocked() const override { return clocked_; }

 private:
  static constexpr model::Picoseconds kNeverDue = ~model::Picoseconds{0};

  void cycle();
  void wake(bool at_once);
  void schedule(std::uint64_t number);
  void sleep();

  model::PcieLink& pcie_;
  model::EthernetLink& ethernet_;
  std::array<model::NicLink*, 2> links_;  ///< Both
  NicOptions options_;
  std::unique_ptr<VerilatedNic> nic_;
  NicListener* listener_ = nullptr;
  EdgeClock edges_;
  std::uint64_t cycles_ = 0;  ///< Number of the next
  std::uint64_t clocked_ = 0;
  std::uint64_t reset_left_ = 0;
  bool asleep_ = false;
  model::Picoseconds due_ = kNeverDue;  ///< The next edge
  model::TimedEvent edge_event_;
};

}  // namespace rnic::testbench
