#include "testbench/tool/world_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "testbench/scenario.hpp"
#include "testbench/tool/report.hpp"

namespace rnic::testbench {
namespace {

/// FROM:TO into two times; where `open_ends`, either may be left out and stays as it is. False: it is none.
bool read_window(const std::string& text, bool open_ends, std::uint64_t& from, std::uint64_t& to) {
  const std::size_t colon = text.find(':');
  const auto number = [open_ends](const std::string& part, std::uint64_t& time) {
    return (open_ends && part.empty()) || CLI::detail::lexical_cast(part, time);
  };
  return colon != std::string::npos && number(text.substr(0, colon), from) && number(text.substr(colon + 1), to);
}

}  // namespace

DrawnWorld WorldArguments::draw() const {
  if (pcie.chosen()) {
    const auto& root = options.host.root_complex;
    fmt::print("  both hosts: {}\n", drawn_from ? describe_link(pcie, root) : describe_pcie(pcie, root));
  }
  if (!drawn_from) return {options, {}, {}, {}};
  DrawnWorld drawn = draw_world(*drawn_from, options);
  for (const auto& line : drawn.text) fmt::print("  {}\n", line);
  return drawn;
}

void add_world_options(CLI::App& command, WorldArguments& world) {
  WorldOptions& options = world.options;
  command.add_option("--seed", options.seed, "Seed of everything random")->capture_default_str();
  auto* drawn = command.add_option(
      "--world", world.drawn_from,
      "Draw the machines and the wire from this seed: sizes, order and timing of PCI Express, clocks, rate, "
      "path MTU, first PSNs; instead of the options that say them");
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  command
      .add_option("--threads", options.threads,
                  "Threads that simulate, one a NIC at most: results are the same with any number [default: cores]")
      ->envname("RNIC_THREADS")
      ->check(CLI::Range(1u, 64u));
  command.add_flag_callback(
      "--no-clock-gating", [&options] { options.clock_gating = false; },
      "Clock a NIC also while it is quiet, and all of it: waits cost what work does, results are the same");
  command.add_flag(
      "--check-rest", options.check_rest,
      "Stop when a clock stands still where something would have changed: of a room, or of a quiet NIC. Slow");
  const auto choose = [&options](const std::string& text) {
    const std::map<std::string, NicKind> kinds = {{"rtl", NicKind::kRtl}, {"model", NicKind::kModel}};
    const std::size_t comma = text.find(',');
    const auto first = kinds.find(text.substr(0, comma));
    const auto second = comma == std::string::npos ? first : kinds.find(text.substr(comma + 1));
    if (first == kinds.end() || second == kinds.end())
      throw CLI::ValidationError("--nic", "'" + text + "' is none of rtl, model, rtl,model, model,rtl");
    options.nics.fill(second->second);
    options.nics[0] = first->second;
  };
  command
      .add_option_function<std::string>("--nic", choose,
                                        "NIC of all hosts, or of host A and of the others: rtl, or model, the "
                                        "reference NIC, which has no waves and no blocks [rtl]")
      ->type_name("KIND[,KIND]");
  command.add_option("--link-gbps", options.wire.rate_gbps, "Rate of the wire, 10^9 bits per second")
      ->check(CLI::Range(0.1, 400.0))
      ->capture_default_str();
  command.add_option("--link-delay-ns", options.wire.delay_ns, "Delay of the wire")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  add_pcie_options(command, world.pcie, options.host.root_complex, drawn);
}

void add_file_options(CLI::App& command, WorldOptions& options, const std::string& of) {
  command.add_option("--pcap", options.capture_path, "Write the frames on the wire to this capture file")
      ->type_name("FILE");
  auto* trace = command.add_option(
      "--trace", options.trace_path,
      "Write the waves of " + of + " to this FST file, and beside it what GTKWave (.gtkw) and Surfer (.sucl) show");
  trace->type_name("FILE");
  const auto window = [&options](const std::string& text) {
    auto& range = options.trace_range;
    if (!read_window(text, true, range.from_ns, range.to_ns) || range.from_ns >= range.to_ns)
      throw CLI::ValidationError("--trace-window", "'" + text + "' is not FROM:TO, two times in ns, the first below");
  };
  command
      .add_option_function<std::string>("--trace-window", window,
                                        "Only from this to that simulated time since the reset, ns; either may be left "
                                        "out")
      ->type_name("FROM:TO")
      ->needs(trace);
  const auto scope = [&options](const std::string& text) {
    constexpr std::string_view kTop = "rnic_top";
    const std::size_t colon = text.find(':');
    auto& range = options.trace_range;
    range.scope = text.substr(0, colon);
    if (range.scope == kTop) range.scope.clear();
    if (range.scope.starts_with(std::string(kTop) + ".")) range.scope.erase(0, kTop.size() + 1);
    if (colon != std::string::npos &&
        (!CLI::detail::lexical_cast(text.substr(colon + 1), range.depth) || range.depth == 0))
      throw CLI::ValidationError("--trace-scope", "'" + text + "' is not SCOPE or SCOPE:LEVELS");
  };
  command
      .add_option_function<std::string>("--trace-scope", scope,
                                        "Only this scope and what is in it (rnic_top.u_send_side), or so many levels "
                                        "of it")
      ->type_name("SCOPE[:LEVELS]")
      ->needs(trace);
  command
      .add_option("--trace-mark", options.trace_range.mark_ns,
                  "Time at which viewers open the waves, simulated ns since the reset, instead of the first work "
                  "request")
      ->needs(trace);
}

namespace {

/// What an FST file of the whole NIC grows by, of two NICs together, as measured with 4096-byte packets at 100 Gbit/s:
/// bytes for each byte of payload, and megabytes for each microsecond in which both are busy.
constexpr double kTraceBytesAByte = 100, kTraceMegabytesAMicrosecond = 1;

void announce_trace(const WorldOptions& options, std::optional<std::uint64_t> moved_bytes) {
  const TraceRange& range = options.trace_range;
  // How large a part is nobody knows before.
  if (options.trace_path.empty() || !range.scope.empty() || range.depth != 0) return;
  const double pairs = static_cast<double>(options.hosts) / 2;
  std::string size =
      fmt::format("{:.1f} MB for each microsecond in which the NICs are busy", pairs * kTraceMegabytesAMicrosecond);
  std::optional<double> megabytes;
  if (moved_bytes) megabytes = static_cast<double>(*moved_bytes) * kTraceBytesAByte / 1e6;
  if (range.to_ns != TraceRange{}.to_ns) {
    const double window = pairs * static_cast<double>(range.to_ns - range.from_ns) / 1000 * kTraceMegabytesAMicrosecond;
    megabytes = std::min(window, megabytes.value_or(window));
  }
  if (megabytes) size = fmt::format("{:.0f} MB", std::max(1.0, *megabytes));
  fmt::print(stderr,
             "rnic: --trace: the waves will have about {}; --trace-window FROM:TO and --trace-scope SCOPE make "
             "them smaller\n",
             size);
}

}  // namespace

void check_files(const WorldOptions& options, std::optional<std::uint64_t> moved_bytes) {
  check_writable(options.capture_path, "--pcap");
  check_writable(options.trace_path, "--trace");
  check_writable(options.timeline_path, "--timeline");
  announce_trace(options, moved_bytes);
}

void add_timeline_options(CLI::App& command, WorldOptions& options) {
  auto* timeline =
      command.add_option("--timeline", options.timeline_path,
                         "Write the life of each work request to this file, as Chrome trace events (docs/timeline.md)");
  timeline->type_name("FILE");
  const auto parse = [&options](const std::string& text) {
    TimelineWindow& window = options.timeline_window;
    if (!read_window(text, false, window.from_ns, window.to_ns) || window.from_ns > window.to_ns)
      throw CLI::ValidationError("--timeline-window", "is no FROM:TO in nanoseconds: " + text);
  };
  command
      .add_option_function<std::string>("--timeline-window", parse,
                                        "Of the timeline only what touches this part of the simulated time, ns")
      ->type_name("FROM:TO")
      ->needs(timeline);
}

void add_json_option(CLI::App& command, std::string& path) {
  command.add_option("--json", path, "Write the results to this file (docs/results.md)")->type_name("FILE");
}

void print_written(const WorldOptions& options, const std::vector<std::string>& others) {
  std::vector<std::string> files = {options.capture_path, options.trace_path, options.timeline_path};
  files.insert(files.end(), others.begin(), others.end());
  if (!options.trace_path.empty()) {
    const std::filesystem::path trace(options.trace_path);
    for (std::size_t i = 1; i < options.hosts; ++i) {
      auto other = trace;
      other.replace_filename(fmt::format("{}.host{}{}", trace.stem().string(), i, trace.extension().string()));
      if (std::filesystem::exists(other)) files.push_back(other.string());
    }
  }
  for (const auto& file : files)
    if (!file.empty()) fmt::print("  written: {}\n", file);
}

CLI::Validator byte_size() {
  CLI::AsSizeValue size(false);
  size.description("");
  return size;
}

CLI::Validator count_size() {
  const std::map<std::string, std::uint64_t> units = {{"k", 1'000}, {"m", 1'000'000}, {"g", 1'000'000'000}};
  CLI::AsNumberWithUnit count(units);
  count.description("");
  return count;
}

void add_faults_option(CLI::App& command, WorldArguments& world) {
  const auto load = [&world](const std::string& file) {
    try {
      world.options.wire.faults = {};
      load_scenario(file, world.options, world.files);
    } catch (const ScenarioError& error) {
      throw CLI::ValidationError("--faults", error.what());
    }
  };
  command
      .add_option_function<std::string>(
          "--faults", load, "Scenario file: what goes wrong on the wire and on PCI Express (docs/scenarios.md)")
      ->type_name("FILE");
}

}  // namespace rnic::testbench
