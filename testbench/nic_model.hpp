#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <systemc>

#include "model/reference/nic.hpp"
#include "model/timed_event.hpp"
#include "testbench/edge_clock.hpp"
#include "testbench/nic.hpp"
#include "testbench/nic_model_observer.hpp"

namespace rnic::testbench {

/// The reference NIC in SystemC. It has the clock of the RTL, but sees only those of its edges at which something
/// comes, something may leave, or a deadline of its own is over.
class NicModel : public sc_core::sc_module, public Nic {
 public:
  NicModel(const sc_core::sc_module_name& name, model::PcieLink& pcie, model::EthernetLink& ethernet,
           const NicOptions& options);

  void reset() override;
  [[nodiscard]] std::uint64_t reset_ns() const override {
    return (options_.reset_cycles + 1) * options_.clock_period / model::kPicosecondsPerNanosecond + 1;
  }
  void power_cycle(const NicOptions& options) override;
  void start_trace(const std::string&, const TraceRange&) override {}
  void flush_trace() override {}
  void stop_trace() override {}
  void listen(NicListener* listener) override;
  void finish_edge() override {}
  [[nodiscard]] const PortActivity& activity() const override { return activity_; }
  [[nodiscard]] std::vector<std::string> state() override;
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> counts() override;
  [[nodiscard]] bool asleep() const override { return asleep_; }
  [[nodiscard]] std::uint64_t cycles() const override { return edges_.first_edge_at(model::now_ps() + 1); }
  [[nodiscard]] std::uint64_t clocked() const override { return clocked_; }

 private:
  void cycle();
  void wake(bool at_once);
  void schedule(std::uint64_t number);
  void take_inputs();
  void take_frames();
  void answer(const model::HostRequest& request);
  void give_outputs();
  bool give_request();
  void give_frames();
  [[nodiscard]] std::optional<model::Picoseconds> next_arrival() const;
  [[nodiscard]] std::optional<model::Picoseconds> next_departure() const;
  void run() { core_->run((cycle_ - born_) * reference::kCycle); }

  model::PcieLink& pcie_;
  model::EthernetLink& ethernet_;
  NicOptions options_;
  EdgeClock edges_;
  std::unique_ptr<reference::Nic> core_;        ///< Null: in reset
  std::unique_ptr<NicModelObserver> observer_;  ///< Or null
  std::uint64_t cycle_ = 0;                     ///< Number of the present edge
  std::uint64_t born_ = 0;                      ///< Edge at which the reset ended
  std::uint64_t reset_end_ = 0;
  std::uint64_t clocked_ = 0;
  bool asleep_ = false;
  model::Picoseconds due_ = ~model::Picoseconds{0};
  std::deque<model::HostCompletion> completions_;
  bool transmitting_ = false;  ///< The frame at the head is in the MAC, which has no room behind it
  PortActivity activity_;
  model::TimedEvent edge_event_;
};

}  // namespace rnic::testbench
