#include "testbench/tool/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

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
                                   bool list) {
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
      {{"write_goodput_fraction", "RDMA Write, 64 KiB messages, MTU 4096, one QP: share of what the wire allows", ""},
       write_goodput},
      {{"read_goodput_fraction", "RDMA Read, the same", ""},
       [&] { return goodput_fraction(world, options, Transfer::Direction::kRead, nullptr); }},
      {{"write_goodput_fraction_mtu256", "RDMA Write, 4 MB in 64 KiB messages, MTU 256, one QP: share", ""},
       [&] {
         return goodput_fraction(world, options, Transfer::Direction::kWrite, nullptr, kSmallMtu, kSmallMtuBytes);
       }},
      {{"read_goodput_fraction_mtu256", "RDMA Read, the same", ""},
       [&] {
         return goodput_fraction(world, options, Transfer::Direction::kRead, nullptr, kSmallMtu, kSmallMtuBytes);
       }},
      {{"small_write_mmps", "8-byte inline Writes, 16 QPs", kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kWrite, 64); }},
      {{"small_write_mmps_unbatched", "the same, 8 outstanding on each: every one through the UAR's window",
        kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kWrite, 8); }},
      {{"doorbell_to_wire_cycles", "doorbell TLP to first byte on the wire, 8-byte inline Write", "cycles"},
       [&] { return doorbell_to_wire(world, options); }},
      {{"write_half_rtt_ns", "8-byte Write ping-pong, half round trip, no wire delay", kNanoseconds},
       [&] { return half_round_trip(world, no_delay); }},
      {{"write_goodput_fraction_loss_1e3", "RDMA Write as above, 10 us round trip, one frame in a thousand lost: share",
        ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kWrite, 1000); }},
      {{"read_goodput_fraction_loss_1e3", "RDMA Read, the same", ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kRead, 1000); }},
      {{"write_goodput_fraction_loss_1e2", "RDMA Write, one frame in a hundred lost: share", ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kWrite, 100); }},
      {{"read_goodput_fraction_loss_1e2", "RDMA Read, the same", ""},
       [&] { return goodput_with_loss(world, options, Transfer::Direction::kRead, 100); }},
      {{"recovery_round_trips_middle", "one packet of a 64 KiB Write lost, in the middle: time lost", "round trips"},
       [&] { return round_trips(drop(kWriteMiddle, 8)); }},
      {{"recovery_round_trips_last", "the same, the last one; ACK time-out 16 us", "round trips"},
       [&] { return round_trips(drop(kWriteLast, 1)); }},
      {{"atomic_neighbour_goodput_fraction",
        "RDMA Write stream beside a queue pair that pipelines fetch-and-adds and SENDs, relative to the stream alone",
        ""},
       [&] { return atomic_neighbour_goodput_fraction(world, options); }},
      {{"bidirectional_goodput_fraction",
        "RDMA Write, 64 KiB messages, both hosts at once over one QP: share of each direction", ""},
       [&] { return bidirectional_goodput_fraction(world, options); }},
      {{"write_goodput_fraction_both_ways", "the same until both are done, ACKs counted: share", ""},
       [&] { return goodput_fraction_both_ways(world, options); }},
      {{"small_write_mmps_both_ways", "8-byte inline Writes, 16 QPs of each host, both at once: each direction",
        kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kWrite, 64, true); }},
      {{"small_read_mmps", "8-byte Reads, 16 QPs, 16 outstanding on each", kPerMicrosecond},
       [&] { return small_message_rate(world, options, Transfer::Direction::kRead, 16); }},
      {{"random_address_write_mmps",
        "64-byte Writes, 16 QPs, each from and to a random place of 256 regions of 512 KiB", kPerMicrosecond},
       [&] { return random_address_write_rate(world, options); }},
      {{"write_latency_p50_ns", "64-byte Write beside a stream, posting to completion, 8 at once: median",
        kNanoseconds},
       [&] { return latency_of(&LatencySummary::median); }},
      {{"write_latency_p99_ns", "the same: 99 of a hundred take no longer", kNanoseconds},
       [&] { return latency_of(&LatencySummary::p99); }},
      {{"write_latency_p999_ns", "the same: 999 of a thousand", kNanoseconds},
       [&] { return latency_of(&LatencySummary::p999); }},
      {{"first_touch_write_ns", "64-byte Write, posting to completion, first to and from its regions", kNanoseconds},
       [&] { return touch_of(&TouchTimes::first_ns); }},
      {{"warm_write_ns", "the same once more", kNanoseconds}, [&] { return touch_of(&TouchTimes::warm_ns); }},
      {{"nd2_send_half_rtt_ns",
        "8-byte Send ping-pong by polls of the completion queue, half round trip, no wire delay", kNanoseconds},
       [&] { return send_half_round_trip(world, no_delay); }},
      {{"nd2_registrations_per_second", "IND2MemoryRegion: Register of 64 KiB and Deregister, one after the other",
        kPerSecond},
       [&] { return registration_rate(world, options); }},
      {{"nd2_fast_registers_per_second", "NdkFastRegister of 16 pages and NdkInvalidate, 8 regions on one QP",
        kPerSecond},
       [&] { return fast_registration_rate(world, options); }},
      {{"nd2_connections_per_second", "IND2Connector: Connect, Accept and Disconnect, one after the other", kPerSecond},
       [&] { return connection_rate(world, options); }},
      {{"simulated_cycles_per_second", "simulator, two NICs busy", "cycles/s", 0, true},
       [&] {
         if (speed == 0) write_goodput();
         return speed;
       }},
      {{"simulated_cycles_per_second_one_thread", "the same, one thread", "cycles/s", 0, true},
       [&] {
         WorldOptions one = options;
         one.threads = 1;
         double slower = 0;
         goodput_fraction(world, one, Transfer::Direction::kWrite, &slower);
         return slower;
       }},
      {{"wall_us_per_small_write", "8-byte Write of a program of libibverbs through rnic serve, posting to completion",
        "us", 0, true},
       [&] { return programs_of(&ProgramTimes::us_per_small_write); }},
      {{"wall_mb_per_s", "64 KiB Writes of the same program, 16 at once", "MB/s", 0, true},
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
    figure.value = run();
    figure.cycles = cycles_of(figure, options);
    figures.push_back(figure);
  }
  return figures;
}

}  // namespace rnic::testbench
