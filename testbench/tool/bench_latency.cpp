#include "testbench/tool/bench_latency.hpp"

#include <cstring>
#include <stdexcept>

#include "testbench/tool/bench_pairs.hpp"

namespace rnic::testbench {
namespace {

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
  auto& device = pairs.side(host).endpoint->host().device();
  for (auto look = device.look(); *word != value; look = device.look()) device.look_again(look, kLoadNs);
}

}  // namespace

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

}  // namespace rnic::testbench
