#include "testbench/tool/bench_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "testbench/interrupt.hpp"
#include "testbench/tool/bench_loss.hpp"
#include "testbench/tool/report.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kMostMessage = 1 << 20, kLongMessage = 64 << 10, kSmallMessage = 64;
/// Messages that go inline, as those of the small figures do.
constexpr std::uint64_t kMostInline = 64;
constexpr std::uint64_t kFewestMessages = 4, kMostMessages = 2048;
/// Of one direction.
constexpr std::uint64_t kSweepBytes = kBenchBufferBytes / 2;
constexpr std::uint32_t kSweepDepth = 32, kMostQps = 128;
constexpr std::uint64_t kLoneMessages = 16;

struct Sweep {
  std::string axis;
  std::vector<double> values;
  std::uint64_t message;
  std::uint32_t qps;
};

const std::vector<std::pair<std::string, Sweep>>& sweeps() {
  static const std::vector<std::pair<std::string, Sweep>> all = {
      {"message", {"message, bytes", {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576}, kLongMessage, 16}},
      {"qps", {"queue pairs", {1, 2, 4, 8, 16, 32, 64, 128}, kSmallMessage, 1}},
      {"mtu", {"path MTU, bytes", {256, 512, 1024, 2048, 4096}, kLongMessage, 1}},
      {"loss", {"loss, share of packets", {0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05}, kLongMessage, 1}},
      {"rtt", {"round trip of the wire, ns", {0, 1000, 2000, 5000, 10000, 20000, 50000, 100000}, kLongMessage, 1}},
      {"pcie-read", {"latency of a DMA read, ns", {100, 250, 500, 1000, 2000, 4000, 8000}, kLongMessage, 1}}};
  return all;
}

const Sweep& find(const std::string& over) {
  return std::find_if(sweeps().begin(), sweeps().end(), [&](const auto& one) { return one.first == over; })->second;
}

/// A stream in a world.
struct Point {
  Stream stream;
  WorldOptions options;
  double loss = 0;
};

std::uint64_t whole(double value, std::uint64_t least, std::uint64_t most, const std::string& axis) {
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most)) || value != std::floor(value))
    throw UsageError(fmt::format("--at: {} cannot be {:g}, it is {} to {}", axis, value, least, most));
  return static_cast<std::uint64_t>(value);
}

double real(double value, double least, double most, const std::string& axis) {
  if (!(value >= least && value <= most))
    throw UsageError(fmt::format("--at: {} cannot be {:g}, it is {:g} to {:g}", axis, value, least, most));
  return value;
}

Point point_at(const SweepOptions& sweep, double value, const WorldOptions& options) {
  const Sweep& kind = find(sweep.over);
  Point point{{}, options, 0};
  auto& stream = point.stream;
  stream.message = sweep.message.value_or(kind.message);
  stream.qps = sweep.qps.value_or(kind.qps);
  stream.mtu = sweep.mtu.value_or(kBenchMtu);
  if (sweep.over == "message") stream.message = whole(value, 1, kMostMessage, kind.axis);
  if (sweep.over == "qps") stream.qps = static_cast<std::uint32_t>(whole(value, 1, kMostQps, kind.axis));
  if (sweep.over == "mtu") {
    const std::array<double, 5> mtus{256, 512, 1024, 2048, 4096};
    if (std::find(mtus.begin(), mtus.end(), value) == mtus.end())
      throw UsageError(fmt::format("--at: {} cannot be {:g}", kind.axis, value));
    stream.mtu = static_cast<std::uint32_t>(value);
  }
  if (sweep.over == "loss") {
    point.loss = real(value, 0, 0.2, kind.axis);
    if (options.wire.delay_ns == 0) point.options.wire.delay_ns = kLossDelayNs;
  }
  if (sweep.over == "rtt") point.options.wire.delay_ns = real(value, 0, 1e6, kind.axis) / 2;
  if (sweep.over == "pcie-read") point.options.host.root_complex.read_latency_ns = real(value, 1, 1e6, kind.axis);
  stream.messages =
      std::clamp(kSweepBytes / stream.message, kFewestMessages, kMostMessages) / kFewestMessages * kFewestMessages;
  stream.queue_depth = stream.outstanding = kSweepDepth;
  return point;
}

/// Of the packets in the middle of messages, which carry data and nothing else, one of each 1/loss is lost.
void lose(Point& point) {
  if (point.loss == 0) return;
  constexpr std::uint8_t kWriteMiddle = 7, kReadResponseMiddle = 14;
  const bool read = point.stream.direction == Transfer::Direction::kRead;
  const auto each = static_cast<std::uint64_t>(std::llround(1 / point.loss));
  const std::uint64_t packets = point.stream.messages * (point.stream.message / point.stream.mtu);
  for (std::size_t from = 0; from < 2; ++from) {
    auto& rules = point.options.wire.faults[from].rules;
    for (std::uint64_t nth = (each + 1) / 2; nth <= 2 * packets; nth += each)
      rules.push_back(drop(read ? kReadResponseMiddle : kWriteMiddle, nth));
  }
}

LimitWorld limit_world(const WorldOptions& options) {
  const auto& root = options.host.root_complex;
  return {options.wire.rate_gbps,  options.wire.delay_ns,        root.bandwidth_gbytes,    root.read_latency_ns,
          root.config.max_payload, root.config.max_read_request, root.config.extended_tags};
}

LimitWork limit_work(const Stream& stream) {
  LimitWork work;
  work.kind = stream.direction == Transfer::Direction::kRead ? LimitKind::kRead : LimitKind::kWrite;
  work.message = stream.message;
  work.mtu = stream.mtu;
  work.both_ways = stream.both_ways;
  work.inline_data = stream.inline_data;
  work.qps = stream.qps;
  work.depth = stream.outstanding;
  work.read_limit = ConnectParameters{}.read_limit;
  return work;
}

std::uint64_t dropped(World& world) {
  std::uint64_t count = 0;
  for (std::size_t from = 0; from < World::kHosts; ++from)
    count += world.wire().direction(from).faults()[static_cast<std::size_t>(model::WireFault::kDrop)];
  return count;
}

SweepRow measure(World& world, double value, Point point) {
  SweepRow row;
  row.at = value;
  row.stream = point.stream;
  LimitWork work = limit_work(point.stream);
  const LimitWorld limits = limit_world(point.options);
  if (!point.stream.both_ways) {
    Stream alone = point.stream;
    alone.qps = alone.outstanding = 1;
    alone.messages = std::min(kLoneMessages, kSweepBytes / alone.message);
    const auto latency = run_stream(world, point.options, alone).latency;
    row.latency_ns = latency.minimum;
    row.median_ns = latency.median;
    row.least_ns = least_latency_ns(limits, work);
  }
  lose(point);
  row.result = run_stream(world, point.options, point.stream);
  row.lost = dropped(world) / (point.stream.both_ways ? 2 : 1);
  const std::uint64_t packets = std::max<std::uint64_t>(1, (work.message + work.mtu - 1) / work.mtu);
  work.lost = static_cast<double>(row.lost) / static_cast<double>(row.result.messages * packets);
  row.limit = goodput_limit(limits, work);
  return row;
}

}  // namespace

const std::vector<std::string>& sweep_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, sweep] : sweeps()) all.push_back(name);
    return all;
  }();
  return names;
}

std::string axis_of(const std::string& over) { return find(over).axis; }

std::vector<double> default_values(const std::string& over) { return find(over).values; }

std::string SweepRow::what() const {
  return fmt::format("{}{}", stream.direction == Transfer::Direction::kRead ? "Read" : "Write",
                     stream.both_ways ? " both ways" : "");
}

std::vector<SweepRow> run_sweep(World& world, const WorldOptions& options, const SweepOptions& sweep,
                                const std::function<void(std::size_t, std::size_t)>& done) {
  const std::vector<double> values = sweep.at.empty() ? default_values(sweep.over) : sweep.at;
  std::vector<Point> points;
  for (const double value : values) points.push_back(point_at(sweep, value, options));
  std::vector<SweepRow> rows;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const auto direction : {Transfer::Direction::kWrite, Transfer::Direction::kRead}) {
      for (const bool both_ways : {false, true}) {
        Point point = points[i];
        point.stream.direction = direction;
        point.stream.both_ways = both_ways;
        point.stream.inline_data = direction == Transfer::Direction::kWrite && point.stream.message <= kMostInline;
        try {
          rows.push_back(measure(world, values[i], std::move(point)));
        } catch (const Interrupted&) {
          rows.resize(4 * i);
          return rows;
        }
        done(rows.size(), 4 * points.size());
      }
    }
  }
  return rows;
}

}  // namespace rnic::testbench
