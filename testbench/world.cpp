#include "testbench/world.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "model/random.hpp"

namespace rnic::testbench {
namespace {

/// A reset happens at a multiple of this time: a whole number of clock cycles, so that runs do not depend on what was before.
constexpr model::Picoseconds kResetGrid = 1'000'000;

bool enabled(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
}

/// waves.fst for host 0, waves.host1.fst for host 1.
std::string trace_file(const std::string& path, const Host& host) {
  const std::filesystem::path whole(path);
  if (host.index() == 0) return path;
  return (whole.parent_path() / (whole.stem().string() + "." + host.basename() + whole.extension().string())).string();
}

model::WireOptions seeded(model::WireOptions options, std::uint64_t seed) {
  options.seed = model::Random(seed, "wire").next();
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
  return options;
}

World::World(const WorldOptions& options)
    : sc_module(sc_core::sc_module_name("world")), options_(options), wire_("wire", seeded(options.wire, options.seed)), runner_("runner") {
  for (std::size_t i = 0; i < kHosts; ++i) {
    const std::string name = "host" + std::to_string(i);
    hosts_[i] = std::make_unique<Host>(name.c_str(), i, options.host, options.seed, wire_.port(i));
  }
  if (kResetGrid % options.host.nic.clock_period != 0) throw std::invalid_argument("clock_period does not divide one microsecond");
  wire_.set_tap([this](const model::FrameRecord& frame) {
    if (capture_ && !frame.bad) capture_->write(frame.end - epoch_, frame.bytes);
    if (observer_) observer_(frame);
  });
  open_files();
}

World::~World() = default;

void World::open_files() {
  if (!options_.capture_path.empty()) capture_ = std::make_unique<model::PcapWriter>(options_.capture_path);
  if (options_.trace_path.empty()) return;
  for (auto& host : hosts_) host->nic().start_trace(trace_file(options_.trace_path, *host));
}

void World::finish_files() {
  if (capture_) capture_->flush();
}

void World::add_app(std::size_t index, std::string name, App app) {
  Host& target = host(index);
  runner_.add(std::string(target.basename()) + "/" + name, [&target, body = std::move(app)] { body(target); });
}

void World::run(std::uint64_t limit_ns) {
  try {
    runner_.run(model::to_sc_time(limit_ns * model::kPicosecondsPerNanosecond));
  } catch (const SimulationTimeout& timeout) {
    finish_files();
    throw SimulationTimeout(timeout.what() + describe());
  } catch (...) {
    finish_files();
    throw;
  }
  finish_files();
  check_misuse();
}

void World::idle(std::uint64_t ns) { runner_.idle(model::to_sc_time(ns * model::kPicosecondsPerNanosecond)); }

void World::check_misuse() const {
  for (const auto& host : hosts_) {
    if (host->device().misuse().empty()) continue;
    throw std::logic_error(std::string(host->basename()) + ": the driver misused its device: " + host->device().misuse().front());
  }
}

std::string World::describe() const {
  std::ostringstream text;
  for (std::size_t i = 0; i < kHosts; ++i) {
    const auto& statistics = hosts_[i]->root_complex().statistics();
    text << "\n  " << hosts_[i]->basename() << ": DMA reads " << statistics.dma_reads << " (outstanding "
         << hosts_[i]->root_complex().outstanding_reads() << "), writes " << statistics.dma_writes << ", interrupts "
         << statistics.interrupts << ", IOMMU faults " << hosts_[i]->iommu().fault_count() << ", frames sent "
         << wire_.statistics(i).frames << ", clock cycles " << hosts_[i]->nic().cycles();
  }
  return text.str();
}

void World::reset(const WorldOptions& options) {
  if (capture_) capture_->close();
  capture_.reset();
  for (auto& host : hosts_) host->nic().stop_trace();
  // A power-on world is at time 0 and on the grid already.
  const model::Picoseconds past_grid = model::now_ps() % kResetGrid;
  if (past_grid != 0) sc_core::sc_start(model::to_sc_time(kResetGrid - past_grid), sc_core::SC_RUN_TO_TIME);
  epoch_ = model::now_ps();
  options_ = options;
  for (auto& host : hosts_) host->reset(options.host, options.seed);
  wire_.reset(seeded(options.wire, options.seed));
  open_files();
}

}  // namespace rnic::testbench
