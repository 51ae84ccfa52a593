#include "testbench/world.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "model/random.hpp"
#include "testbench/coverage/world_coverage.hpp"
#include "testbench/interrupt.hpp"
#include "testbench/timeline/timeline.hpp"

namespace rnic::testbench {
namespace {

/// A reset happens at a multiple of this time: a whole number of clock cycles, so that runs do not depend on what was
/// before.
constexpr model::Picoseconds kResetGrid = 1'000'000;

bool enabled(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
}

/// Longest time for which a NIC may wait for the answer to a DMA read (base specification 2.8: 50 ms in the default
/// range), with some time to act on it.
constexpr model::Picoseconds kCompletionTimeout = 55'000'000'000;

/// waves.fst for host 0, waves.host1.fst for host 1.
std::string trace_file(const std::string& path, const Host& host) {
  const std::filesystem::path whole(path);
  if (host.index() == 0) return path;
  return (whole.parent_path() / (whole.stem().string() + "." + host.basename() + whole.extension().string())).string();
}

template <typename Counts, typename Name>
void append_faults(std::ostream& text, const char* where, const Counts& counts, Name name_of) {
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] != 0) text << ", " << where << ' ' << name_of(kind) << ' ' << counts[kind];
  }
}

/// What the switch did with the frames of a port, and did not pass on.
void append_switch_port(std::ostream& text, const model::EthernetSwitchStatistics& port) {
  text << "; the switch sent it " << port.sent << " frames, dropped " << port.overflow << " for want of room, "
       << port.unsent << " for want of a link";
}

model::WireOptions seeded(model::WireOptions options, std::uint64_t seed, const std::string& part) {
  options.seed = model::Random(seed, part).next();
  return options;
}

/// `options`, if there can be a world of so many hosts.
const WorldOptions& with_hosts(const WorldOptions& options) {
  if (options.hosts < 1 || options.stations() < 2 || options.stations() > WorldOptions::kMostHosts)
    throw std::invalid_argument("a world has 2 to 16 hosts, or free ends beside one, not " +
                                std::to_string(options.hosts) + " and " + std::to_string(options.free_ends));
  return options;
}

}  // namespace

WorldOptions WorldOptions::from_environment(const std::string& name) {
  WorldOptions options;
  if (const char* text = std::getenv("RNIC_SEED")) {
    char* end = nullptr;
    options.seed = std::strtoull(text, &end, 0);
    if (end == text || *end != 0) throw std::invalid_argument(std::string("RNIC_SEED is no number: '") + text + "'");
  }
  if (enabled("WAVES")) options.trace_path = name + ".fst";
  if (enabled("CAPTURE")) options.capture_path = name + ".pcap";
  if (enabled("TIMELINE")) options.timeline_path = name + ".timeline.json";
  options.check_rest = enabled("CHECK_REST");
  if (const char* text = std::getenv("RNIC_NIC")) {
    const std::string kind = text;
    if (kind != "rtl" && kind != "model")
      throw std::invalid_argument("RNIC_NIC is neither rtl nor model: '" + kind + "'");
    options.host.nic.kind = kind == "rtl" ? NicKind::kRtl : NicKind::kModel;
  }
  return options;
}

HostOptions World::host_options(std::size_t index) const {
  HostOptions options = options_.each_host.at(index).value_or(options_.host);
  if (options_.pcie_faults.at(index)) options.root_complex.faults = *options_.pcie_faults[index];
  if (options_.nics.at(index)) options.nic.kind = *options_.nics[index];
  // The last is that of the thread which does all the rest, when it has met all others.
  options.nic.clock.own_thread = index + 1 < options_.hosts && index + 1 < options_.threads;
  options.nic.clock.gating = options_.clock_gating;
  options.nic.clock.check_rest = options_.check_rest;
  return options;
}

model::WireOptions World::wire_options(std::size_t index) const {
  return options_.has_switch() && index < options_.hosts ? options_.each_wire.at(index).value_or(options_.wire)
                                                         : options_.wire;
}

std::vector<model::WireOptions> World::cables() const {
  std::vector<model::WireOptions> all;
  for (std::size_t i = 0; i < options_.stations(); ++i)
    all.push_back(seeded(wire_options(i), options_.seed, "wire" + std::to_string(i)));
  return all;
}

World::World(const WorldOptions& options)
    : sc_module(sc_core::sc_module_name("world")),
      options_(with_hosts(options)),
      wire_(options.has_switch() ? nullptr
                                 : std::make_unique<model::Wire>("wire", seeded(options.wire, options.seed, "wire"))),
      switch_(options.has_switch()
                  ? std::make_unique<model::EthernetSwitch>("switch", cables(), options.ethernet_switch)
                  : nullptr),
      runner_("runner") {
  for (std::size_t i = 0; i < options.hosts; ++i) {
    const std::string name = "host" + std::to_string(i);
    auto& link = switch_ ? switch_->port(i) : wire_->port(i);
    hosts_.push_back(std::make_unique<Host>(name.c_str(), i, host_options(i), options.seed, link));
  }
  if (kResetGrid % options.host.nic.clock_period != 0)
    throw std::invalid_argument("clock_period does not divide one microsecond");
  if (wire_) wire_->set_tap([this](const model::FrameRecord& frame) { saw(frame); });
  if (switch_) {
    switch_->set_tap([this](std::size_t port, const model::FrameRecord& frame) {
      if (cable_observer_) cable_observer_(port, frame);
      if (frame.from != 0) return;
      model::FrameRecord sent = frame;
      sent.from = port;
      saw(sent);
    });
  }
  open_files();
  watch_wires();
}

World::~World() = default;

model::Wire& World::wire() {
  if (!wire_) throw std::logic_error("this world has a switch, and a wire for each host");
  return *wire_;
}

model::EthernetSwitch& World::ethernet_switch() {
  if (!switch_) throw std::logic_error("this world has no switch");
  return *switch_;
}

World::Plug World::plug(std::size_t station) const {
  return switch_ ? Plug{switch_->cable(station), 0} : Plug{*wire_, station};
}

/// A frame that a host, or somebody at a free end, has sent.
void World::saw(const model::FrameRecord& frame) {
  if (!frame.bad) ++frames_;
  if (capture_ && !frame.bad) capture_->write(frame.end - epoch_, frame.bytes);
  if (frame.from >= hosts_.size()) return;
  if (watch_) watch_->sent(frame);
  if (coverage_) coverage_->sent(frame);
  if (timeline_) timeline_->frame(frame, frames_);
  if (observer_) observer_(frame);
}

void World::open_files() {
  if (!options_.capture_path.empty()) capture_ = std::make_unique<model::PcapWriter>(options_.capture_path);
  if (!options_.timeline_path.empty() || !options_.observers.empty()) {
    std::vector<Host*> watched;
    for (const auto& host : hosts_) watched.push_back(host.get());
    timeline_ = std::make_unique<Timeline>(options_, epoch_, std::move(watched));
  }
  if (options_.trace_path.empty()) return;
  for (auto& host : hosts_) host->nic().start_trace(trace_file(options_.trace_path, *host), options_.trace_range);
}

void World::watch_wires() {
  watch_.reset();
  std::vector<WireWatch::Plug> plugs;
  for (std::size_t i = 0; i < hosts_.size(); ++i) plugs.push_back({*hosts_[i], plug(i).wire, plug(i).end});
  watch_ = std::make_unique<WireWatch>(std::move(plugs), epoch_);
  coverage_.reset();
  if (!WorldCoverage::wanted()) return;
  coverage_ = std::make_unique<WorldCoverage>();
  for (std::size_t i = 0; i < hosts_.size(); ++i) coverage_->watch(*hosts_[i], plug(i).wire, plug(i).end);
}

void World::flush_files() {
  flush_capture();
  for (auto& host : hosts_) host->nic().flush_trace();
}

void World::flush_capture() {
  if (capture_) capture_->flush();
}

void World::close_timeline() {
  if (timeline_) timeline_->close();
  timeline_.reset();
}

void World::add_app(std::size_t index, std::string name, App app) {
  Host& target = host(index);
  runner_.add(std::string(target.basename()) + "/" + name, [&target, body = std::move(app)] { body(target); });
}

void World::run(std::uint64_t limit_ns) {
  std::string state;
  last_movements_ = movements();
  last_movement_ = model::now_ps();
  // Often enough that a hang is seen soon after its time.
  constexpr std::uint64_t kLooks = 8;
  const model::Picoseconds hang_period = options_.hang_ns * model::kPicosecondsPerNanosecond / kLooks;
  // Some 5,000 clock cycles: a user who interrupts does not wait.
  constexpr model::Picoseconds kInterruptPeriod = 20'000'000;
  model::Picoseconds hang_look = model::now_ps() + hang_period;
  std::optional<std::uint64_t> by_user_ns;
  const auto look = [&] {
    if (options_.interruptible && interrupted()) by_user_ns = now_ns();
    if (by_user_ns) return true;
    if (hang_period == 0 || model::now_ps() < hang_look) return false;
    hang_look = model::now_ps() + hang_period;
    return stuck();
  };
  for (auto& host : hosts_) {
    host->device().set_long_sleep(options_.hang_ns * model::kPicosecondsPerNanosecond);
    host->device().go_on();
  }
  const auto ask = [this] {
    for (auto& host : hosts_) host->device().stop();
  };
  try {
    runner_.run(model::to_sc_time(limit_ns * model::kPicosecondsPerNanosecond),
                {model::to_sc_time(options_.interruptible ? kInterruptPeriod : hang_period), look},
                {[&] { state = describe(); }, ask});
  } catch (const Hang& hang) {
    flush_capture();
    if (by_user_ns) throw Interrupted(*by_user_ns);
    throw Hang(hang.what() + state);
  } catch (const SimulationTimeout& timeout) {
    flush_capture();
    throw SimulationTimeout(timeout.what() + state);
  } catch (...) {
    flush_capture();
    throw;
  }
  judge();
}

void World::judge() {
  flush_capture();
  for (auto& host : hosts_) host->nic().finish_edge();
  check_misuse();
  check_violations();
}

void World::idle(std::uint64_t ns) { runner_.idle(model::to_sc_time(ns * model::kPicosecondsPerNanosecond)); }

std::uint64_t World::movements() const {
  std::uint64_t all = 0;
  for (const auto& host : hosts_) all += host->root_complex().statistics().packets;
  for (std::size_t i = 0; i < options_.stations(); ++i) {
    for (const auto& way : ways(i))
      all += way.wire.statistics(way.end).frames + way.wire.direction(way.end).delivered();
  }
  return all;
}

bool World::frames_under_way() const {
  if (switch_ && switch_->waiting() != 0) return true;
  for (std::size_t i = 0; i < options_.stations(); ++i) {
    for (const auto& way : ways(i)) {
      if (way.wire.direction(way.end).under_way() != 0) return true;
    }
  }
  return false;
}

bool World::under_way() const {
  return frames_under_way() || std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
           return host->root_complex().outstanding_reads() != 0;
         });
}

bool World::moving() const {
  return frames_under_way() || std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
           return !host->nic().asleep() || host->root_complex().under_way();
         });
}

void World::settle(std::uint64_t still_ns, std::uint64_t limit_ns) {
  constexpr std::uint64_t kStepNs = 500;
  std::uint64_t seen = movements();
  for (std::uint64_t still = 0, passed = 0; still < still_ns && passed < limit_ns; passed += kStepNs) {
    hosts_[0]->device().elapse(kStepNs);
    const std::uint64_t now = movements();
    still = now == seen && !under_way() ? still + kStepNs : 0;
    seen = now;
  }
}

/// The directions of the network that are counted with station `index`: each of them with one.
std::vector<World::Plug> World::ways(std::size_t index) const {
  const Plug own = plug(index);
  return switch_ ? std::vector<Plug>{own, {own.wire, 1 - own.end}} : std::vector<Plug>{own};
}

bool World::stuck() {
  const model::Picoseconds now = model::now_ps();
  const std::uint64_t count = movements();
  bool moves = count != last_movements_ || frames_under_way();
  model::Picoseconds since = last_movement_;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto& root_complex = hosts_[i]->root_complex();
    moves = moves || root_complex.holds_back();
    since = std::max(since, hosts_[i]->device().asleep_until());
    const auto withheld = root_complex.statistics().last_withheld;
    if (withheld != 0) since = std::max(since, withheld + kCompletionTimeout);
  }
  if (moves) {
    last_movements_ = count;
    last_movement_ = now;
    return false;
  }
  return now >= since + options_.hang_ns * model::kPicosecondsPerNanosecond;
}

void World::check_misuse() const {
  for (const auto& host : hosts_) {
    if (host->device().misuse().empty()) continue;
    throw std::logic_error(std::string(host->basename()) +
                           ": the driver misused its device: " + host->device().misuse().front());
  }
}

void World::check_violations() {
  constexpr double kBitsPerBeat = 8.0 * model::kBeatBytes, kPicosecondsPerNanosecond = 1000, kSlowest = 0.999;
  for (auto& host : hosts_) {
    const auto period = static_cast<double>(host_options(host->index()).nic.clock_period);
    const Plug own = plug(host->index());
    const WireSpeed speed{wire_options(host->index()).rate_gbps,
                          kSlowest * kBitsPerBeat * kPicosecondsPerNanosecond / period};
    for (const auto& [violation, text] : violations_of(*host, own.wire.statistics(own.end), speed)) {
      if (!declared_[static_cast<std::size_t>(violation)]) throw ViolationError(text);
    }
    if (declared_[static_cast<std::size_t>(Violation::kWireRule)] || watch_->count(host->index()) == 0) continue;
    std::string text = std::string(host->basename()) + ": " + std::to_string(watch_->count(host->index())) +
                       " times its frames broke a rule of the wire:";
    for (const auto& said : watch_->complaints(host->index())) text += "\n  " + said;
    throw ViolationError(text);
  }
}

std::string World::describe() const {
  std::ostringstream text;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto& statistics = hosts_[i]->root_complex().statistics();
    const Plug own = plug(i);
    text << "\n  " << hosts_[i]->basename() << ": DMA reads " << statistics.dma_reads << " (outstanding "
         << hosts_[i]->root_complex().outstanding_reads() << "), writes " << statistics.dma_writes << ", interrupts "
         << statistics.interrupts << ", IOMMU faults " << hosts_[i]->iommu().fault_count() << ", frames sent "
         << own.wire.statistics(own.end).frames << ", clock cycles " << hosts_[i]->nic().cycles();
    append_faults(text, "PCI Express", hosts_[i]->root_complex().faults(),
                  [](std::size_t kind) { return model::name(static_cast<model::PcieFault>(kind)); });
    for (const auto& way : ways(i)) {
      append_faults(text, way.end == own.end ? "wire" : "wire from the switch", way.wire.direction(way.end).faults(),
                    [](std::size_t kind) { return model::name(static_cast<model::WireFault>(kind)); });
    }
    if (switch_) append_switch_port(text, switch_->statistics(i));
    const auto state = hosts_[i]->nic().state();
    if (state.empty()) text << "\n    every engine of the NIC rests, and no stream waits";
    for (const auto& line : state) text << "\n    " << line;
  }
  return text.str();
}

void World::reset(const WorldOptions& options) {
  if (options.hosts != hosts_.size() || options.free_ends != options_.free_ends ||
      options.has_switch() != (switch_ != nullptr))
    throw std::invalid_argument("a world keeps its number of hosts and free ends, and its switch if it has one");
  if (capture_) capture_->close();
  capture_.reset();
  close_timeline();
  for (auto& host : hosts_) host->nic().stop_trace();
  // A power-on world is at time 0 and on the grid already.
  const model::Picoseconds past_grid = model::now_ps() % kResetGrid;
  if (past_grid != 0) sc_core::sc_start(model::to_sc_time(kResetGrid - past_grid), sc_core::SC_RUN_TO_TIME);
  epoch_ = model::now_ps();
  frames_ = 0;
  std::vector<NicKind> kinds;
  for (std::size_t i = 0; i < hosts_.size(); ++i) kinds.push_back(host_options(i).nic.kind);
  options_ = options;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (host_options(i).nic.kind != kinds[i]) throw std::invalid_argument("a world keeps the kind of each NIC");
  }
  declared_.reset();
  for (std::size_t i = 0; i < hosts_.size(); ++i) hosts_[i]->reset(host_options(i), options.seed);
  if (wire_) wire_->reset(seeded(options.wire, options.seed, "wire"));
  if (switch_) switch_->reset(cables(), options.ethernet_switch);
  open_files();
  watch_wires();
}

}  // namespace rnic::testbench
