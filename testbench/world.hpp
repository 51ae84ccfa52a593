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
#include <vector>

#include "model/ethernet_switch.hpp"
#include "model/pcap_writer.hpp"
#include "model/wire.hpp"
#include "testbench/app_runner.hpp"
#include "testbench/host.hpp"
#include "testbench/timeline/trace_file.hpp"
#include "testbench/violations.hpp"
#include "testbench/wire_watch.hpp"

namespace rnic::testbench {

class RunObserver;
class Timeline;
class WorldCoverage;

struct WorldOptions {
  static constexpr std::size_t kMostHosts = model::EthernetSwitch::kMaxPorts;

  HostOptions host;  ///< Of all hosts
  /// Of each host, instead of `host`.
  std::array<std::optional<HostOptions>, kMostHosts> each_host{};
  /// With a switch: of each host's cable. faults[0] hit what the host sends, faults[1] what the switch sends to it.
  model::WireOptions wire;
  /// Faults of each host's PCI Express, instead of those in `host`.
  std::array<std::optional<model::PcieFaultOptions>, kMostHosts> pcie_faults{};
  /// The NIC of each host, instead of what its options say. Settled when the World is made.
  std::array<std::optional<NicKind>, kMostHosts> nics{};
  std::uint64_t seed = 1;
  /// That simulate, of this process: the clock edges of all NICs but one have each a thread of their own, as far as
  /// there are threads. Nothing in the results depends on it.
  unsigned threads = 1;
  /// The clock of a NIC that is quiet stands still. Nothing in the results depends on it.
  bool clock_gating = true;
  bool check_rest = false;  ///< A NIC that says so and is not stops the simulation. Slow
  /// A run in which no TLP and no frame has moved for this simulated time is given up (see World::run). 0: never.
  std::uint64_t hang_ns = 20'000'000;
  bool interruptible = false;  ///< A SIGINT that was noted (interrupt.hpp) ends a run
  std::string capture_path;    ///< Capture file of the wire; empty: none
  /// FST file of host 0's NIC; that of host i gets ".host<i>" before the suffix. Empty: none.
  std::string trace_path;
  TraceRange trace_range;     ///< Of them; power-on is the last reset
  std::string timeline_path;  ///< Life of each work request (docs/timeline.md); empty: none
  TimelineWindow timeline_window;
  std::vector<RunObserver*> observers;  ///< Hear what the timeline hears; outlive the world
  std::size_t hosts = 2;                ///< From 1, and with free_ends 2 to kMostHosts. Three and more hang on a switch
  std::size_t free_ends = 0;            ///< Cables at whose end is no host: World::plug
  bool switched = false;                ///< Two do so too
  /// With a switch: of each host's cable, instead of `wire`.
  std::array<std::optional<model::WireOptions>, kMostHosts> each_wire{};
  model::EthernetSwitchOptions ethernet_switch;

  /// What hangs on the network.
  [[nodiscard]] std::size_t stations() const { return hosts + free_ends; }
  [[nodiscard]] bool has_switch() const { return switched || stations() > 2; }

  /// Defaults, with what the environment asks for: RNIC_SEED=number; WAVES=1 writes <name>.fst; CAPTURE=1 writes
  /// <name>.pcap; TIMELINE=1 writes <name>.timeline.json; CHECK_REST=1 is --check-rest; RNIC_NIC=model (or rtl): the
  /// NIC of all hosts. Throws std::invalid_argument for a seed that is no number and a NIC that there is not.
  [[nodiscard]] static WorldOptions from_environment(const std::string& name);
};

/// Hosts and the network between their NICs: two and a wire, or any number on a switch. In the place of a host there
/// may be a free end, for somebody who sends and receives frames there.
///
/// SystemC elaborates once a process, so there is one World a process; reset makes it as good as new. Results depend on
/// the options alone, not on what ran before the reset.
class World : public sc_core::sc_module {
 public:
  static constexpr std::size_t kHosts = 2;  ///< If the options say nothing else
  using App = std::function<void(Host&)>;

  /// Throws as its parts do: std::invalid_argument for an option out of range, std::system_error when the memory range
  /// of a host is taken, std::runtime_error for a file that cannot be written.
  explicit World(const WorldOptions& options = {});
  ~World() override;

  [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }
  [[nodiscard]] Host& host(std::size_t index) { return *hosts_.at(index); }
  /// What joins two hosts without a switch. Throws std::logic_error in a world with one.
  [[nodiscard]] model::Wire& wire();
  /// Throws std::logic_error in a world without one. Host i is at port i, and free end i behind the hosts.
  [[nodiscard]] model::EthernetSwitch& ethernet_switch();
  /// The wire that a NIC is plugged in to, and the end of it that is the NIC's. Behind the hosts come the free ends.
  struct Plug {
    model::Wire& wire;
    std::size_t end;
  };
  [[nodiscard]] Plug plug(std::size_t station) const;
  /// Those of the last reset.
  [[nodiscard]] const WorldOptions& options() const { return options_; }
  /// Those of host `index`, with its own faults, and its thread.
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
  ///
  /// Throws Interrupted soon after a SIGINT, where the options say so; the applications are stopped as by a time-out.
  void run(std::uint64_t limit_ns = 1'000'000'000);
  /// `violation` is what the run is about, or is judged elsewhere, until the next reset.
  void declare(Violation violation) { declared_.set(static_cast<std::size_t>(violation)); }
  /// What capture and waves have by now can be read while they go on.
  void flush_files();
  /// Tells the file of the timeline and the observers what there still is, and ends them. Throws std::runtime_error
  /// when it could not be written.
  void close_timeline();
  /// Lets simulated time pass without applications.
  void idle(std::uint64_t ns);

  /// A NIC is clocked, or a TLP or a frame is under way. False: nothing happens before a deadline.
  [[nodiscard]] bool moving() const;
  /// Ends a run that was not one of `run`: files are whole, and it throws for what `run` would throw for when its
  /// applications have ended.
  void judge();

  /// From an application: waits until nothing has been under way on the wire or on PCI Express for `still_ns`, or
  /// `limit_ns` have passed.
  void settle(std::uint64_t still_ns, std::uint64_t limit_ns);

  /// `observer` sees every frame that a NIC sends, or that is injected in its place, as model::Wire::set_tap says;
  /// `from` is the host. Empty: nobody.
  void observe_frames(model::Wire::Tap observer) { observer_ = std::move(observer); }
  /// `observer` sees every frame on every cable of the switch, as model::EthernetSwitch::set_tap says: those that the
  /// switch sends too. Empty: nobody.
  void observe_cables(model::EthernetSwitch::Tap observer) { cable_observer_ = std::move(observer); }

  /// Power cycle: hosts and wires as new, with `options` (the memory size stays as constructed). Called between runs.
  /// Throws std::invalid_argument for another number of hosts or free ends, a switch that was not there or is to go, or
  /// another kind of NIC.
  void reset(const WorldOptions& options);
  void reset() { reset(options_); }

  /// Frames in the capture file have time stamps relative to the last reset; this is that time.
  [[nodiscard]] model::Picoseconds epoch() const { return epoch_; }
  /// Simulated time since the last reset.
  [[nodiscard]] std::uint64_t now_ns() const { return (model::now_ps() - epoch_) / model::kPicosecondsPerNanosecond; }

 private:
  [[nodiscard]] model::WireOptions wire_options(std::size_t station) const;
  [[nodiscard]] std::vector<model::WireOptions> cables() const;
  [[nodiscard]] std::vector<Plug> ways(std::size_t station) const;
  void saw(const model::FrameRecord& frame);
  void open_files();
  void watch_wires();
  void flush_capture();
  void check_misuse() const;
  void check_violations();
  [[nodiscard]] std::uint64_t movements() const;
  [[nodiscard]] bool frames_under_way() const;
  [[nodiscard]] bool under_way() const;
  [[nodiscard]] bool stuck();
  [[nodiscard]] std::string describe() const;

  WorldOptions options_;
  std::unique_ptr<model::Wire> wire_;              ///< Or
  std::unique_ptr<model::EthernetSwitch> switch_;  ///< this
  std::vector<std::unique_ptr<Host>> hosts_;
  AppRunner runner_;
  std::bitset<kViolations> declared_;
  std::unique_ptr<model::PcapWriter> capture_;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<WireWatch> watch_;
  std::unique_ptr<WorldCoverage> coverage_;  ///< If the environment asks for it
  model::Wire::Tap observer_;
  model::EthernetSwitch::Tap cable_observer_;
  model::Picoseconds epoch_ = 0;
  std::uint64_t frames_ = 0;              ///< On the wire since then, as a capture has them
  std::uint64_t last_movements_ = 0;      ///< When stuck last looked
  model::Picoseconds last_movement_ = 0;  ///< When it last saw one
};

}  // namespace rnic::testbench
