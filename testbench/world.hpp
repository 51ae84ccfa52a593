#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <utility>

#include "model/pcap_writer.hpp"
#include "model/wire.hpp"
#include "testbench/app_runner.hpp"
#include "testbench/host.hpp"
#include "testbench/violations.hpp"

namespace rnic::testbench {

struct WorldOptions {
  HostOptions host;  ///< Of both hosts
  /// Of each host, instead of `host`.
  std::array<std::optional<HostOptions>, 2> each_host{};
  model::WireOptions wire;
  /// Faults of each host's PCI Express, instead of those in `host`.
  std::array<std::optional<model::PcieFaultOptions>, 2> pcie_faults{};
  std::uint64_t seed = 1;
  /// A run in which no TLP and no frame has moved for this simulated time is given up (see World::run). 0: never.
  std::uint64_t hang_ns = 20'000'000;
  std::string capture_path;  ///< Capture file of the wire; empty: none
  std::string trace_path;    ///< FST file of host 0's NIC; host 1's gets ".host1" before the suffix. Empty: none

  /// Defaults, with what the environment asks for: RNIC_SEED=number; WAVES=1 writes <name>.fst; CAPTURE=1 writes
  /// <name>.pcap. Throws std::invalid_argument for a seed that is no number.
  [[nodiscard]] static WorldOptions from_environment(const std::string& name);
};

/// Two hosts and the wire between their NICs.
///
/// SystemC elaborates once a process, so there is one World a process; reset makes it as good as new. Results depend on
/// the options alone, not on what ran before the reset.
class World : public sc_core::sc_module {
 public:
  static constexpr std::size_t kHosts = 2;
  using App = std::function<void(Host&)>;

  /// Throws as its parts do: std::invalid_argument for an option out of range, std::system_error when the memory range
  /// of a host is taken, std::runtime_error for a file that cannot be written.
  explicit World(const WorldOptions& options = {});
  ~World() override;

  [[nodiscard]] Host& host(std::size_t index) { return *hosts_.at(index); }
  [[nodiscard]] model::Wire& wire() { return wire_; }
  /// Those of the last reset.
  [[nodiscard]] const WorldOptions& options() const { return options_; }
  /// Those of host `index`, with its own faults.
  [[nodiscard]] HostOptions host_options(std::size_t index) const;

  /// Adds an application of host `index` to the next run. It is a thread of simulated time.
  void add_app(std::size_t index, std::string name, App app);
  /// Runs until all applications have ended. Rethrows the first exception that leaves one of them, after the others
  /// have been unwound. Throws SimulationTimeout after `limit_ns` of simulated time, and Hang when nothing has moved on
  /// PCI Express and on the wire for hang_ns, both naming the applications that wait, what the hosts did, and what each
  /// engine of the NICs does; std::logic_error when a driver misused its device; ViolationError when a NIC did what no
  /// sound one does, and it was not declared; sc_core::sc_report when the RTL or the kernel reports an error, after
  /// which the world cannot go on.
  ///
  /// It is no hang while an application waits in one Device::elapse of hang_ns or more, a frame is on the wire or held
  /// there, a fault keeps a NIC from sending, or a NIC may still wait for the time-out of a DMA read that was withheld
  /// from it.
  void run(std::uint64_t limit_ns = 1'000'000'000);
  /// `violation` is what the run is about, or is judged elsewhere, until the next reset.
  void declare(Violation violation) { declared_.set(static_cast<std::size_t>(violation)); }
  /// Lets simulated time pass without applications.
  void idle(std::uint64_t ns);

  /// From an application: waits until nothing has been under way on the wire or on PCI Express for `still_ns`, or
  /// `limit_ns` have passed.
  void settle(std::uint64_t still_ns, std::uint64_t limit_ns);

  /// `observer` sees every frame on the wire, as model::Wire::set_tap says. Empty: nobody.
  void observe_frames(model::Wire::Tap observer) { observer_ = std::move(observer); }

  /// Power cycle: hosts and wire as new, with `options` (the memory size stays as constructed). Called between runs.
  void reset(const WorldOptions& options);
  void reset() { reset(options_); }

  /// Frames in the capture file have time stamps relative to the last reset; this is that time.
  [[nodiscard]] model::Picoseconds epoch() const { return epoch_; }

 private:
  void open_files();
  void finish_files();
  void check_misuse() const;
  void check_violations();
  [[nodiscard]] std::uint64_t movements() const;
  [[nodiscard]] bool under_way() const;
  [[nodiscard]] bool stuck();
  [[nodiscard]] std::string describe() const;

  WorldOptions options_;
  model::Wire wire_;
  std::array<std::unique_ptr<Host>, kHosts> hosts_;
  AppRunner runner_;
  std::bitset<kViolations> declared_;
  std::unique_ptr<model::PcapWriter> capture_;
  model::Wire::Tap observer_;
  model::Picoseconds epoch_ = 0;
  std::uint64_t last_movements_ = 0;      ///< When stuck last looked
  model::Picoseconds last_movement_ = 0;  ///< When it last saw one
};

}  // namespace rnic::testbench
