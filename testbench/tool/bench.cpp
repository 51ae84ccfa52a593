#include "testbench/tool/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "testbench/endpoint.hpp"
#include "testbench/tool/atomic_neighbour.hpp"
#include "testbench/tool/bench_data.hpp"
#include "testbench/tool/bench_regions.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/statistics.hpp"
#include "testbench/tool/transfer.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kMtu = 4096;
constexpr std::size_t kBufferBytes = 8 << 20;
/// The smallest packets that a stream has, and enough of them that no buffer hides who cannot keep up.
constexpr std::uint32_t kSmallMtu = 256;
constexpr std::uint64_t kSmallMtuBytes = 4 << 20;
constexpr const char* kNanoseconds = "ns";
constexpr const char* kPerMicrosecond = "M/s";

/// Both hosts with `qps` connected queue pairs; each `per_cq` of them share a completion queue.
class Pairs {
 public:
  Pairs(World& world, std::uint32_t qps, std::uint32_t per_cq, ULONG depth, ULONG inline_bytes,
        const ConnectParameters& connection) {
    for (std::size_t h = 0; h < 2; ++h) {
      auto& side = sides_[h];
      side.endpoint = std::make_unique<Endpoint>(world.host(h));
      for (std::uint32_t i = 0; i < qps; ++i) {
        if (i % per_cq == 0) side.cqs.push_back(side.endpoint->create_cq(depth * per_cq + 16));
        auto& cq = *side.cqs.back();
        side.qps.push_back(side.endpoint->create_qp(cq, cq, {16, depth, 1, 1, inline_bytes, nullptr}));
      }
      side.buffer = static_cast<std::uint8_t*>(world.host(h).memory().allocate(kBufferBytes));
      fill_bench_data({side.buffer, kBufferBytes}, h);
      side.region = side.endpoint->register_memory(side.buffer, kBufferBytes,
                                                   ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ);
    }
    for (std::uint32_t i = 0; i < qps; ++i)
      connect_pair(*sides_[0].endpoint, *sides_[0].qps[i], *sides_[1].endpoint, *sides_[1].qps[i], connection);
  }

  struct Side {
    std::unique_ptr<Endpoint> endpoint;
    std::vector<ComPtr<IND2CompletionQueue>> cqs;
    std::vector<ComPtr<IND2QueuePair>> qps;
    std::uint8_t* buffer = nullptr;
    ComPtr<IND2MemoryRegion> region;
  };
  [[nodiscard]] Side& side(std::size_t host) { return sides_[host]; }
  /// Bytes [offset, offset + bytes) of both buffers: local at `host`, remote at the other.
  [[nodiscard]] Transfer::Range range(std::size_t host, std::uint64_t offset, std::uint64_t bytes, ULONG flags = 0) {
    auto& here = sides_[host];
    auto& there = sides_[1 - host];
    return {here.buffer + offset,
            here.region->GetLocalToken(),
            reinterpret_cast<std::uint64_t>(there.buffer) + offset,
            there.region->GetRemoteToken(),
            bytes,
            flags};
  }

 private:
  std::array<Side, 2> sides_;
};

/// Makes the pairs, runs the applications that `apps` adds, and takes the pairs down, all in simulated time. The first
/// `moved` bytes of both buffers must be equal then, wherever they came from.
void with_pairs(World& world, const WorldOptions& options, std::uint32_t qps, std::uint32_t per_cq, ULONG depth,
                ULONG inline_bytes, std::uint64_t moved, const std::function<void(Pairs&)>& apps,
                const ConnectParameters& connection = {kMtu}) {
  world.reset(options);
  std::unique_ptr<Pairs> pairs;
  world.add_app(0, "setup",
                [&](Host&) { pairs = std::make_unique<Pairs>(world, qps, per_cq, depth, inline_bytes, connection); });
  world.run();
  apps(*pairs);
  world.run();
  world.add_app(0, "close", [&](Host& host) {
    host.device().elapse(kInFlightNs);
    require_moved({pairs->side(0).buffer, moved}, {pairs->side(1).buffer, moved});
    pairs.reset();
  });
  world.run();
}

double goodput_fraction(World& world, const WorldOptions& options, Transfer::Direction direction,
                        double* cycles_per_second, std::uint32_t mtu = kMtu, std::uint64_t bytes = kBufferBytes) {
  constexpr std::uint64_t kMessage = 64 << 10;
  std::uint64_t nanoseconds = 0;
  with_pairs(world, options, 1, 1, 32, 0, bytes,
             [&](Pairs& pairs) {
               world.add_app(0, "stream", [&](Host& host) {
                 Transfer transfer(*pairs.side(0).endpoint, *pairs.side(0).cqs[0], {pairs.side(0).qps[0].get()}, 32);
                 const auto start = std::chrono::steady_clock::now();
                 const std::uint64_t cycles = host.nic().cycles();
                 nanoseconds = transfer.run(direction, pairs.range(0, 0, bytes), kMessage);
                 const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
                 if (cycles_per_second)
                   *cycles_per_second = static_cast<double>(host.nic().cycles() - cycles) / seconds;
               });
             },
             {mtu});
  const double gbps = 8.0 * static_cast<double>(bytes) / static_cast<double>(nanoseconds);
  return gbps / (options.wire.rate_gbps * wire_payload_share(kMessage, mtu, false));
}

/// 8-byte Reads or inline Writes over 16 queue pairs, four threads, each queue pair with up to `outstanding`: messages
/// per microsecond.
double small_message_rate(World& world, const WorldOptions& options, Transfer::Direction direction,
                          std::uint32_t outstanding) {
  constexpr std::uint32_t kThreads = 4, kPerThread = 4;
  constexpr std::uint64_t kMessages = 2000, kBytes = 8;
  const bool write = direction == Transfer::Direction::kWrite;
  std::uint64_t first = ~0ULL, last = 0;
  constexpr std::uint64_t kMoved = kThreads * kMessages * kBytes;
  with_pairs(world, options, kThreads * kPerThread, kPerThread, 64, write ? kBytes : 0, kMoved, [&](Pairs& pairs) {
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      world.add_app(0, "thread" + std::to_string(t), [&, t](Host& host) {
        auto& side = pairs.side(0);
        std::vector<IND2QueuePair*> qps;
        for (std::uint32_t i = 0; i < kPerThread; ++i) qps.push_back(side.qps[t * kPerThread + i].get());
        Transfer transfer(*side.endpoint, *side.cqs[t], qps, outstanding);
        first = std::min(first, host.device().now_ns());
        transfer.run(
            direction,
            pairs.range(0, t * kMessages * kBytes, kMessages * kBytes, write ? ULONG{ND_OP_FLAG_INLINE} : ULONG{0}),
            kBytes);
        last = std::max(last, host.device().now_ns());
      });
    }
  });
  return static_cast<double>(kThreads * kMessages) * 1000.0 / static_cast<double>(last - first);
}

/// Both hosts stream Writes at once, over one queue pair: share of what the wire allows, the mean of both directions.
double bidirectional_goodput_fraction(World& world, const WorldOptions& options) {
  constexpr std::uint64_t kMessage = 64 << 10, kHalf = kBufferBytes / 2;
  double bits_per_ns = 0;
  with_pairs(world, options, 1, 1, 32, 0, kBufferBytes, [&](Pairs& pairs) {
    for (std::size_t h = 0; h < 2; ++h) {
      world.add_app(h, "stream" + std::to_string(h), [&, h](Host&) {
        auto& side = pairs.side(h);
        Transfer transfer(*side.endpoint, *side.cqs[0], {side.qps[0].get()}, 32);
        const auto nanoseconds = transfer.run(Transfer::Direction::kWrite, pairs.range(h, h * kHalf, kHalf), kMessage);
        bits_per_ns += 8.0 * static_cast<double>(kHalf) / static_cast<double>(nanoseconds);
      });
    }
  });
  return bits_per_ns / 2 / (options.wire.rate_gbps * wire_payload_share(kMessage, kMtu, false));
}

/// 64-byte Writes from posting to completion, eight at once on queue pairs of their own, beside a stream of 64 KiB
/// Writes.
LatencySummary write_latency(World& world, const WorldOptions& options) {
  constexpr std::uint32_t kProbes = 8;
  constexpr std::uint64_t kBytes = 64, kProbeBytes = 2048 * kBytes, kMessage = 64 << 10, kStream = 2 << 20;
  LatencySummary latency;
  bool over = false;
  // The second completion queue is the stream's, which needs one queue pair of its eight.
  with_pairs(world, options, 2 * kProbes, kProbes, 32, 0, kProbeBytes + kStream, [&](Pairs& pairs) {
    world.add_app(0, "stream", [&](Host&) {
      auto& side = pairs.side(0);
      Transfer transfer(*side.endpoint, *side.cqs[1], {side.qps[kProbes].get()}, 32);
      do transfer.run(Transfer::Direction::kWrite, pairs.range(0, kProbeBytes, kStream), kMessage);
      while (!over);
    });
    world.add_app(0, "probes", [&](Host& host) {
      host.device().elapse(20'000);  // the stream has begun
      auto& side = pairs.side(0);
      std::vector<IND2QueuePair*> qps;
      for (std::uint32_t i = 0; i < kProbes; ++i) qps.push_back(side.qps[i].get());
      Transfer transfer(*side.endpoint, *side.cqs[0], qps, 1);
      transfer.run(Transfer::Direction::kWrite, pairs.range(0, 0, kProbeBytes), kBytes);
      latency = summarize(transfer.latencies());
      over = true;
    });
  });
  return latency;
}

/// Writes `value` to the peer's first word, inline and silent.
void put_word(Pairs& pairs, std::size_t host, std::uint64_t value) {
  const auto range = pairs.range(host, 0, sizeof value);
  const ND2_SGE sge{&value, sizeof value, 0};
  require_success(pairs.side(host).qps[0]->Write(nullptr, &sge, 1, range.remote, range.remote_token,
                                                 ND_OP_FLAG_INLINE | ND_OP_FLAG_SILENT_SUCCESS),
                  "IND2QueuePair::Write");
}

void wait_word(Pairs& pairs, std::size_t host, std::uint64_t value) {
  constexpr std::uint64_t kLoadNs = 5;
  const auto* word = reinterpret_cast<const volatile std::uint64_t*>(pairs.side(host).buffer);
  while (*word != value) pairs.side(host).endpoint->device().elapse(kLoadNs);
}

/// 8-byte Write ping-pong on polled memory: half of the round trip, nanoseconds.
double half_round_trip(World& world, const WorldOptions& options) {
  constexpr std::uint64_t kRounds = 50;
  std::uint64_t nanoseconds = 0;
  with_pairs(world, options, 1, 1, 64, 8, 0, [&](Pairs& pairs) {
    world.add_app(0, "ping", [&](Host& host) {
      const std::uint64_t start = host.device().now_ns();
      for (std::uint64_t i = 1; i <= kRounds; ++i) {
        put_word(pairs, 0, i);
        wait_word(pairs, 0, i);
      }
      nanoseconds = host.device().now_ns() - start;
    });
    world.add_app(1, "pong", [&](Host&) {
      for (std::uint64_t i = 1; i <= kRounds; ++i) {
        wait_word(pairs, 1, i);
        put_word(pairs, 1, i);
      }
    });
  });
  return static_cast<double>(nanoseconds) / (2.0 * kRounds);
}

/// From the clock cycle in which the NIC accepts the TLP that posts an 8-byte inline Write to the one in which its
/// frame starts.
double doorbell_to_wire(World& world, WorldOptions options) {
  double cycles = 0;
  // One TLP posts it: of several that come in any order, none is the one.
  for (auto& host : options.each_host) {
    if (host) host->write_combining_split = 0;
  }
  constexpr unsigned kMostLooks = 50;
  with_pairs(world, options, 1, 1, 64, 8, 0, [&](Pairs& pairs) {
    world.add_app(0, "write", [&](Host& host) {
      put_word(pairs, 0, 1);
      host.device().elapse(20'000);
      put_word(pairs, 0, 2);
      host.device().elapse(2'000);
      const auto& activity = host.nic().activity();
      for (unsigned i = 0; i < kMostLooks && activity.last_frame_start < activity.last_host_request; ++i)
        host.device().elapse(2'000);
      if (activity.last_frame_start < activity.last_host_request)
        throw std::runtime_error("the Write did not reach the wire");
      cycles = static_cast<double>(activity.last_frame_start - activity.last_host_request);
    });
  });
  return cycles;
}

/// The wire of the figures with loss: 10 us there and back.
constexpr double kLossDelayNs = 5'000;

WorldOptions with_loss(const WorldOptions& options, const std::vector<model::WireRule>& rules,
                       std::size_t from_host = 0) {
  WorldOptions lossy = options;
  lossy.wire.delay_ns = kLossDelayNs;
  lossy.wire.faults[from_host].rules = rules;
  return lossy;
}

model::WireRule drop(std::optional<std::uint8_t> opcode, std::uint64_t nth) {
  model::WireRule rule;
  rule.fault = model::WireFault::kDrop;
  rule.match.opcode = opcode;
  rule.nth = nth;
  return rule;
}

/// Of the frames in which the data of `direction` travels, every `each`th is lost, from the middle of the first `each`
/// on.
double goodput_with_loss(World& world, const WorldOptions& options, Transfer::Direction direction, std::uint64_t each) {
  std::vector<model::WireRule> rules;
  for (std::uint64_t nth = each / 2; nth <= kBufferBytes / kMtu; nth += each) rules.push_back(drop({}, nth));
  return goodput_fraction(world, with_loss(options, rules, direction == Transfer::Direction::kRead ? 1 : 0), direction,
                          nullptr);
}

/// How long a 64 KiB Write takes with the loss that `rules` say, nanoseconds.
double write_time(World& world, const WorldOptions& options, const std::vector<model::WireRule>& rules) {
  constexpr std::uint64_t kMessage = 64 << 10;
  std::uint64_t nanoseconds = 0;
  ConnectParameters connection{kMtu};
  connection.ack_timeout = 2;  // 16 us: what the last packet waits for
  with_pairs(
      world, with_loss(options, rules), 1, 1, 4, 0, kMessage,
      [&](Pairs& pairs) {
        world.add_app(0, "write", [&](Host&) {
          Transfer transfer(*pairs.side(0).endpoint, *pairs.side(0).cqs[0], {pairs.side(0).qps[0].get()}, 4);
          nanoseconds = transfer.run(Transfer::Direction::kWrite, pairs.range(0, 0, kMessage), kMessage);
        });
      },
      connection);
  return static_cast<double>(nanoseconds);
}

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
      {{"simulated_cycles_per_second", "simulator, two NICs busy", "cycles/s", 0, true},
       [&] {
         if (speed == 0) write_goodput();
         return speed;
       }},
      {{"simulated_cycles_per_second_one_thread", "the same, one thread", "cycles/s", 0, true}, [&] {
         WorldOptions one = options;
         one.threads = 1;
         double slower = 0;
         goodput_fraction(world, one, Transfer::Direction::kWrite, &slower);
         return slower;
       }}};
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
