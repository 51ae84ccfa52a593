#include "testbench/tool/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>

#include "testbench/interrupt.hpp"
#include "testbench/tool/atomic_neighbour.hpp"
#include "testbench/tool/bench_latency.hpp"
#include "testbench/tool/bench_loss.hpp"
#include "testbench/tool/bench_nd2.hpp"
#include "testbench/tool/bench_programs.hpp"
#include "testbench/tool/bench_regions.hpp"
#include "testbench/tool/bench_streams.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/statistics.hpp"

namespace rnic::testbench {
namespace {

/// The smallest packets that a stream has, and enough of them that no buffer hides who cannot keep up.
constexpr std::uint32_t kSmallMtu = 256;
constexpr std::uint64_t kSmallMtuBytes = 4 << 20;
constexpr const char* kNanoseconds = "ns";
constexpr const char* kPerMicrosecond = "M/s";
constexpr const char* kPerSecond = "/s";

/// BenchFigure::cycles of a figure with a value.
double cycles_of(const BenchFigure& figure, const WorldOptions& options) {
  const auto period = options.host.nic.clock_period;
  const double period_ns = static_cast<double>(period) / static_cast<double>(model::kPicosecondsPerNanosecond);
  if (figure.unit == kNanoseconds) return figure.value / period_ns;
  if (figure.unit == kPerMicrosecond && figure.value > 0) return 1000.0 / (figure.value * period_ns);
  return 0;
}

}  // namespace

std::vector<BenchFigure> run_bench(World& world, const WorldOptions& options, const std::vector<std::string>& only,
                                   bool list, const std::function<void(std::size_t, std::size_t)>& done) {
  WorldOptions no_delay = options;
  no_delay.wire.delay_ns = 0;
  constexpr std::uint8_t kWriteMiddle = 7, kWriteLast = 8;
  const auto round_trips = [&](const model::WireRule& rule) {
    return (write_time(world, options, {rule}) - write_time(world, options, {})) / (2 * kLossDelayNs);
  };
  double speed = 0;
  const auto write_goodput = [&] { return goodput_fraction(world, options, Transfer::Direction::kWrite, &speed); };
  // What is measured once for several figures.
  std::optional<LatencySummary> latency;
  const auto latency_of = [&](std::uint64_t LatencySummary::*which) {
    if (!latency) latency = write_latency(world, options);
    return static_cast<double>((*latency).*which);
  };
  std::optional<TouchTimes> touch;
  const auto touch_of = [&](double TouchTimes::*which) {
    if (!touch) touch = write_touch_times(world, options);
    return (*touch).*which;
  };
  std::optional<ProgramTimes> programs;
  const auto programs_of = [&](double ProgramTimes::*which) {
    if (!programs) programs = time_programs();
    return (*programs).*which;
  };
  struct Measurement {
    BenchFigure figure;
    std::function<double()> run;
  };
  std::vector<Measurement> all = {
      {{"write_goodput_fraction", "RDMA Write, 64 KiB messages, MTU 4096, one QP: share of the wire's limit", ""},
       write_goodput},
      {{"read_goodput_fraction", "RDMA Read, 64 KiB messages, MTU 4096, one QP: share of the wire's limit", ""},
       [&] { return goodput_fraction(world, options, Transfer::Direction::kRead, nullptr); }},
      {{"write_goodput_fraction_mtu256", "RDMA Write, 64 KiB messages, MTU 256, one QP: share of the wire's limit", ""},
       [&] {
         return goodput_fraction(world, options, Transfer::Direction::kWrite, nullptr, kSmallMtu, kSmallMtuBytes);
       }},
      {{"read_goodput_fraction_mtu256", "RDMA Read, 64 KiB messages, MTU 256, one QP: share of the wire's limit", ""},
       [&] {
         return goodput_fraction(world, options, Transfer::Direction::kRead, nullptr, kSmallMtu, kSmallMtuBytes);
       }},
      {{"small_write_mmps", "8-byte inline Writes, 16 QPs, 64 outstanding on each", kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kWrite, 64); }},
      {{"small_write_mmps_unbatched", "8-byte inline Writes, 16 QPs, 8 outstanding on each, all through the UAR window",
        kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kWrite, 8); }},
      {{"doorbell_to_wire_cycles", "doorbell TLP to first byte on the wire, 8-byte inline Write", "cycles"},
       [&] { return doorbell_to_wire(world, options); }},
      {{"write_half_rtt_ns", "8-byte Write ping-pong, half round trip, no wire delay", kNanoseconds},
       [&] { return half_round_trip(world, no_delay); }},
      {{"write_goodput_fraction_loss_1e3",
        "RDMA Write, 64 KiB messages, 10 us round trip, 1 of 1,000 frames lost: share", ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kWrite, 1000); }},
      {{"read_goodput_fraction_loss_1e3", "RDMA Read, 64 KiB messages, 10 us round trip, 1 of 1,000 frames lost: share",
        ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kRead, 1000); }},
      {{"write_goodput_fraction_loss_1e2", "RDMA Write, 64 KiB messages, 10 us round trip, 1 of 100 frames lost: share",
        ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kWrite, 100); }},
      {{"read_goodput_fraction_loss_1e2", "RDMA Read, 64 KiB messages, 10 us round trip, 1 of 100 frames lost: share",
        ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kRead, 100); }},
      {{"recovery_round_trips_middle", "64 KiB Write, a packet in its middle lost: time until repaired", "round trips"},
       [&] { return round_trips(drop(kWriteMiddle, 8)); }},
      {{"recovery_round_trips_last", "64 KiB Write, its last packet lost, ACK time-out 16 us: time until repaired",
        "round trips"},
       [&] { return round_trips(drop(kWriteLast, 1)); }},
      {{"atomic_neighbour_goodput_fraction",
        "RDMA Write stream beside pipelined atomics and SENDs of another QP: share kept", ""},
       [&] { return atomic_neighbour_goodput_fraction(world, options); }},
      {{"bidirectional_goodput_fraction", "RDMA Write, 64 KiB, both hosts at once over one QP: share of each direction",
        ""},
       [&] { return bidirectional_goodput_fraction(world, options); }},
      {{"write_goodput_fraction_both_ways",
        "RDMA Write, 64 KiB, both hosts at once until both end, ACKs counted: share", ""},
       [&] { return goodput_fraction_both_ways(world, options); }},
      {{"small_write_mmps_both_ways", "8-byte inline Writes, 16 QPs of each host, both at once: each direction",
        kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kWrite, 64, true); }},
      {{"small_read_mmps", "8-byte Reads, 16 QPs, 16 outstanding on each", kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kRead, 16); }},
      {{"random_address_write_mmps", "64-byte Writes, 16 QPs, random addresses in 256 regions of 512 KiB",
        kPerMicrosecond},
       [&] { return random_address_write_rate(world, options); }},
      {{"write_latency_p50_ns", "64-byte Writes beside a stream, 8 outstanding, posting to completion: median",
        kNanoseconds},
       [&] { return latency_of(&LatencySummary::median); }},
      {{"write_latency_p99_ns", "64-byte Writes beside a stream, 8 outstanding, posting to completion: 99 %",
        kNanoseconds},
       [&] { return latency_of(&LatencySummary::p99); }},
      {{"write_latency_p999_ns", "64-byte Writes beside a stream, 8 outstanding, posting to completion: 99.9 %",
        kNanoseconds},
       [&] { return latency_of(&LatencySummary::p999); }},
      {{"first_touch_write_ns", "64-byte Write, posting to completion, first access to its memory regions",
        kNanoseconds},
       [&] { return touch_of(&TouchTimes::first_ns); }},
      {{"warm_write_ns", "64-byte Write, posting to completion, second access to its memory regions", kNanoseconds},
       [&] { return touch_of(&TouchTimes::warm_ns); }},
      {{"nd2_send_half_rtt_ns", "8-byte Send ping-pong, polling the CQ, half round trip, no wire delay", kNanoseconds},
       [&] { return send_half_round_trip(world, no_delay); }},
      {{"nd2_registrations_per_second", "IND2MemoryRegion: Register of 64 KiB and Deregister, one after the other",
        kPerSecond},
       [&] { return registration_rate(world, options); }},
      {{"nd2_fast_registers_per_second", "NdkFastRegister of 16 pages and NdkInvalidate, 8 regions on one QP",
        kPerSecond},
       [&] { return fast_registration_rate(world, options); }},
      {{"nd2_connections_per_second", "IND2Connector: Connect, Accept and Disconnect, one after the other", kPerSecond},
       [&] { return connection_rate(world, options); }},
      {{"simulated_cycles_per_second", "simulator, two NICs busy, all threads", "cycles/s", 0, true},
       [&] {
         if (speed == 0) write_goodput();
         return speed;
       }},
      {{"simulated_cycles_per_second_one_thread", "simulator, two NICs busy, one thread", "cycles/s", 0, true},
       [&] {
         WorldOptions one = options;
         one.threads = 1;
         double slower = 0;
         goodput_fraction(world, one, Transfer::Direction::kWrite, &slower);
         return slower;
       }},
      {{"wall_us_per_small_write", "8-byte Write of a libibverbs program through rnic serve, posting to completion",
        "us", 0, true},
       [&] { return programs_of(&ProgramTimes::us_per_small_write); }},
      {{"wall_mb_per_s", "64 KiB Writes of a libibverbs program through rnic serve, 16 at once", "MB/s", 0, true},
       [&] { return programs_of(&ProgramTimes::mb_per_s); }}};
  std::string names;
  for (const auto& measurement : all) names.append(names.empty() ? "" : ", ").append(measurement.figure.key);
  for (const auto& key : only) {
    if (std::none_of(all.begin(), all.end(), [&](const Measurement& m) { return m.figure.key == key; })) {
      throw UsageError(fmt::format("no figure \"{}\"; there are {}", key, names));
    }
  }
  std::vector<BenchFigure> figures;
  for (auto& [figure, run] : all) {
    if (!only.empty() && std::find(only.begin(), only.end(), figure.key) == only.end()) continue;
    if (list) {
      figures.push_back(figure);
      continue;
    }
    try {
      figure.value = run();
    } catch (const std::exception&) {
      if (!interrupted()) throw;
      return figures;
    }
    figure.cycles = cycles_of(figure, options);
    figures.push_back(figure);
    if (done) done(figures.size(), only.empty() ? all.size() : only.size());
  }
  return figures;
}

}  // namespace rnic::testbench
