#include "testbench/tool/bench_sweep_report.hpp"

#include <fmt/format.h>

namespace rnic::testbench {
namespace {

nlohmann::ordered_json row_json(const SweepRow& row) {
  nlohmann::ordered_json json = {{"goodput_gbps", row.result.gbps()},
                                 {"limit_gbps", row.limit.gbps},
                                 {"limit_by", row.limit.by},
                                 {"rate_mmps", row.result.mmps()},
                                 {"limit_mmps", row.limit.mmps},
                                 {"message", row.stream.message},
                                 {"messages", row.result.messages},
                                 {"qps", row.stream.qps},
                                 {"mtu", row.stream.mtu},
                                 {"outstanding", row.stream.outstanding},
                                 {"simulated_ns", row.result.nanoseconds},
                                 {"lost", row.lost},
                                 {"full_latency_median_ns", row.result.latency.median},
                                 {"full_latency_p99_ns", row.result.latency.p99}};
  if (row.stream.both_ways) return json;
  json["latency_min_ns"] = row.latency_ns;
  json["latency_median_ns"] = row.median_ns;
  json["latency_limit_ns"] = row.least_ns;
  return json;
}

}  // namespace

void print_sweep(const SweepOptions& sweep, const std::vector<SweepRow>& rows) {
  fmt::print("{:>26}  {:<16}{:>9}{:>9}{:>8}  {:<13}{:>9}{:>9}{:>12}{:>8}\n", axis_of(sweep.over), "", "Gbit/s", "limit",
             "", "limit by", "M/s", "limit", "latency, ns", "least");
  for (const auto& row : rows) {
    const auto at = row.stream.both_ways || row.stream.direction == Transfer::Direction::kRead
                        ? std::string()
                        : fmt::format("{:.10g}", row.at);
    fmt::print("{:>26}  {:<16}{:>9.2f}{:>9.2f}{:>6.1f} %  {:<13}{:>9.3f}{:>9.3f}", at, row.what(), row.result.gbps(),
               row.limit.gbps, 100 * row.result.gbps() / row.limit.gbps, row.limit.by, row.result.mmps(),
               row.limit.mmps);
    if (!row.stream.both_ways) fmt::print("{:>12}{:>8.0f}", row.median_ns, row.least_ns);
    fmt::print("\n");
  }
  fmt::print(
      "both ways: both hosts at once, figures of each direction; latency: of one message with nothing beside it; "
      "limits: docs/limits.md\n");
}

nlohmann::ordered_json sweep_json(const SweepOptions& sweep, const std::vector<SweepRow>& rows,
                                  const WorldOptions& options, const std::string& pcie) {
  auto points = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    if (row.what() == "Write") points.push_back({{"at", row.at}});
    std::string key = row.stream.direction == Transfer::Direction::kRead ? "read" : "write";
    if (row.stream.both_ways) key += "_both_ways";
    points.back()[key] = row_json(row);
  }
  return {{"sweep", sweep.over},
          {"axis", axis_of(sweep.over)},
          {"seed", options.seed},
          {"link_gbps", options.wire.rate_gbps},
          {"link_delay_ns", options.wire.delay_ns},
          {"pcie", pcie},
          {"points", points}};
}

}  // namespace rnic::testbench
