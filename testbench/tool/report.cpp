#include "testbench/tool/report.hpp"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "testbench/timeline/life_names.hpp"

#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

double share_of_wire(const CopyPhase& phase, const CopyOptions& options, double link_gbps) {
  const double allowed = link_gbps * wire_payload_share(options.message, options.mtu, false);
  return allowed == 0 ? 0 : phase.goodput_gbps() / allowed;
}

nlohmann::ordered_json phase_json(const CopyPhase& phase, const CopyOptions& options, double link_gbps) {
  return {{"messages", phase.messages},
          {"bytes", phase.bytes},
          {"simulated_ns", phase.nanoseconds},
          {"goodput_gbps", phase.goodput_gbps()},
          {"goodput_fraction", share_of_wire(phase, options, link_gbps)},
          {"latency_min_ns", phase.latency.minimum},
          {"latency_median_ns", phase.latency.median},
          {"latency_p99_ns", phase.latency.p99}};
}

void print_row(const char* name, const std::string& write, const std::string& read) {
  fmt::print("  {:<28}{:>16}{:>16}\n", name, write, read);
}

void print_interval(const char* name, const CopyReport::Interval& interval) {
  fmt::print("  {:<9} {:>10.2f} us simulated, {:>9} clock cycles of each NIC, {:>6.0f} cycles per second\n", name,
             static_cast<double>(interval.simulated_ns) / 1000, interval.cycles, interval.cycles_per_second());
}

nlohmann::ordered_json counters_json(const NicCounters& counters) {
  nlohmann::ordered_json json;
  for (std::size_t i = 0; i < counters.size(); ++i) json[std::string(hw::kCounterNames[i])] = counters[i];
  return json;
}

template <typename Kind, typename Counts>
void add_counts(nlohmann::ordered_json& to, const char* part, const char* place, const Counts& counts) {
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] != 0) to[part][place][model::name(static_cast<Kind>(kind))] = counts[kind];
  }
}

}  // namespace

void check_writable(const std::filesystem::path& path, const char* option) {
  if (path.empty()) return;
  std::error_code error;
  const bool existed = std::filesystem::exists(path, error);
  const bool writable = !std::filesystem::is_directory(path, error) && std::ofstream(path, std::ios::app).good();
  if (!existed && writable) std::filesystem::remove(path, error);
  if (!writable) throw UsageError(fmt::format("{}: cannot write '{}'", option, path.string()));
}

void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& value) {
  if (path.empty()) return;
  std::ofstream out(path);
  out << value.dump(2) << '\n';
  out.close();
  if (!out) throw UsageError(fmt::format("--json: cannot write '{}'", path.string()));
}

void print_copy(const CopyReport& report, const CopyOptions& options, double link_gbps) {
  const auto& w = report.write;
  const auto& r = report.read;
  const auto two = [](double value) { return fmt::format("{:.2f}", value); };
  const auto percent = [&](const CopyPhase& phase) {
    return fmt::format("{:.1f} %", 100 * share_of_wire(phase, options, link_gbps));
  };
  print_row("", "RDMA Write", "RDMA Read");
  print_row("messages", std::to_string(w.messages), std::to_string(r.messages));
  print_row("bytes", std::to_string(w.bytes), std::to_string(r.bytes));
  print_row("simulated time, us", two(static_cast<double>(w.nanoseconds) / 1000),
            two(static_cast<double>(r.nanoseconds) / 1000));
  print_row("goodput, Gbit/s", two(w.goodput_gbps()), two(r.goodput_gbps()));
  print_row("share of what the wire allows", percent(w), percent(r));
  print_row("latency minimum, ns", std::to_string(w.latency.minimum), std::to_string(r.latency.minimum));
  print_row("latency median, ns", std::to_string(w.latency.median), std::to_string(r.latency.median));
  print_row("latency p99, ns", std::to_string(w.latency.p99), std::to_string(r.latency.p99));
  fmt::print("\n");
  print_interval("set-up", report.setup);
  print_interval("transfer", report.transfer);
  print_interval("tear-down", report.tear_down);
  for (std::size_t host = 0; host < report.counters.size(); ++host) {
    for (const auto& [what, counts] : trouble(report.counters[host])) {
      fmt::print("  {} {}: {}\n", host == 0 ? "A" : "B", what, fmt::join(counts, ", "));
    }
  }
  if (report.interrupted) {
    fmt::print("  {}: of {} bytes {} were written and {} read back\n", toned("interrupted", Tone::kBad),
               report.file_bytes, w.bytes, r.bytes);
    return;
  }
  fmt::print("  SHA-256 file    {}\n  SHA-256 written {}\n  SHA-256 read    {}\n  {}\n", report.file_sha256,
             report.written_sha256, report.read_sha256,
             report.equal() ? toned("equal", Tone::kGood) : toned("DIFFERENT", Tone::kBad));
}

nlohmann::ordered_json copy_json(const CopyReport& report, const CopyOptions& options, double link_gbps,
                                 std::uint64_t seed) {
  return {{"seed", seed},
          {"message", options.message},
          {"qps", options.qps},
          {"mtu", options.mtu},
          {"link_gbps", link_gbps},
          {"write", phase_json(report.write, options, link_gbps)},
          {"read", phase_json(report.read, options, link_gbps)},
          {"setup", {{"simulated_ns", report.setup.simulated_ns}, {"cycles", report.setup.cycles}}},
          {"tear_down", {{"simulated_ns", report.tear_down.simulated_ns}, {"cycles", report.tear_down.cycles}}},
          {"simulated_ns", report.transfer.simulated_ns},
          {"cycles", report.transfer.cycles},
          {"sha256", {{"file", report.file_sha256}, {"written", report.written_sha256}, {"read", report.read_sha256}}},
          {"equal", report.equal()},
          {"counters", {{"a", counters_json(report.counters[0])}, {"b", counters_json(report.counters[1])}}}};
}

nlohmann::ordered_json copy_wall_clock(const CopyReport& report) {
  return {{"setup_seconds", report.setup.wall_seconds},
          {"seconds", report.transfer.wall_seconds},
          {"simulated_cycles_per_second", report.transfer.cycles_per_second()}};
}

nlohmann::ordered_json faults_json(World& world) {
  auto json = nlohmann::ordered_json::object();
  const auto letter = [](std::size_t host) { return std::string(1, static_cast<char>('a' + host)); };
  for (std::size_t i = 0; i < world.hosts(); ++i) {
    const auto plug = world.plug(i);
    const std::string way = world.hosts() == World::kHosts ? letter(i) + "_to_" + letter(1 - i) : "from_" + letter(i);
    add_counts<model::WireFault>(json, "wire", way.c_str(), plug.wire.direction(plug.end).faults());
  }
  for (std::size_t i = 0; i < world.hosts(); ++i)
    add_counts<model::PcieFault>(json, "pcie", letter(i).c_str(), world.host(i).root_complex().faults());
  return json;
}

std::string with_faults(World& world, const std::string& why) {
  std::vector<std::string> hits;
  for (std::size_t i = 0; i < world.hosts(); ++i) {
    const std::string letter = host_letter(static_cast<unsigned>(i));
    const auto plug = world.plug(i);
    const auto add = [&]<typename Kind>(const auto& counts, Kind, const char* place) {
      for (std::size_t kind = 0; kind < counts.size(); ++kind) {
        if (counts[kind] != 0)
          hits.push_back(
              fmt::format("{} host {}: {} {}", place, letter, counts[kind], model::name(static_cast<Kind>(kind))));
      }
    };
    add(plug.wire.direction(plug.end).faults(), model::WireFault{}, "wire from");
    add(world.host(i).root_complex().faults(), model::PcieFault{}, "PCI Express of");
  }
  return hits.empty() ? why : fmt::format("{}\n  faults of the scenario that hit: {}", why, fmt::join(hits, "; "));
}

}  // namespace rnic::testbench
