#include "testbench/tool/bench_streams.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "testbench/limits/limits.hpp"
#include "testbench/tool/bench_pairs.hpp"
#include "testbench/tool/statistics.hpp"

namespace rnic::testbench {
namespace {

/// As many as share the queue pairs evenly, four at most.
std::uint32_t threads_of(std::uint32_t qps) { return qps % 4 == 0 ? 4 : qps % 2 == 0 ? 2 : 1; }

}  // namespace

StreamResult run_stream(World& world, const WorldOptions& options, const Stream& stream) {
  const std::uint32_t threads = threads_of(stream.qps), per_thread = stream.qps / threads;
  const std::uint64_t share = stream.messages / threads * stream.message, bytes = share * threads;
  const std::size_t hosts = stream.both_ways ? 2 : 1;
  const ULONG flags = stream.inline_data ? ULONG{ND_OP_FLAG_INLINE} : ULONG{0};
  std::uint64_t first = ~0ULL, last = 0;
  std::vector<std::uint64_t> latencies;
  with_pairs(world, options, stream.qps, per_thread, stream.queue_depth,
             stream.inline_data ? static_cast<ULONG>(stream.message) : 0, bytes * hosts,
             [&](Pairs& pairs) {
               for (std::size_t h = 0; h < hosts; ++h) {
                 for (std::uint32_t t = 0; t < threads; ++t) {
                   world.add_app(h, "thread" + std::to_string(t), [&, h, t](Host& host) {
                     auto& side = pairs.side(h);
                     std::vector<IND2QueuePair*> qps;
                     for (std::uint32_t i = 0; i < per_thread; ++i) qps.push_back(side.qps[t * per_thread + i].get());
                     Transfer transfer(*side.endpoint, *side.cqs[t], qps, stream.outstanding);
                     first = std::min(first, host.device().now_ns());
                     transfer.run(stream.direction, pairs.range(h, h * bytes + t * share, share, flags),
                                  stream.message);
                     last = std::max(last, host.device().now_ns());
                     latencies.insert(latencies.end(), transfer.latencies().begin(), transfer.latencies().end());
                   });
                 }
               }
             },
             {stream.mtu});
  return {bytes, bytes / stream.message, last - first, summarize(std::move(latencies))};
}

double goodput_fraction(World& world, const WorldOptions& options, Transfer::Direction direction,
                        double* cycles_per_second, std::uint32_t mtu, std::uint64_t bytes) {
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

double small_message_rate(World& world, const WorldOptions& options, Transfer::Direction direction,
                          std::uint32_t outstanding, bool both_ways) {
  Stream stream;
  stream.direction = direction;
  stream.message = 8;
  stream.messages = 8000;
  stream.qps = 16;
  stream.queue_depth = 64;
  stream.outstanding = outstanding;
  stream.inline_data = direction == Transfer::Direction::kWrite;
  stream.both_ways = both_ways;
  return run_stream(world, options, stream).mmps();
}

double bidirectional_goodput_fraction(World& world, const WorldOptions& options) {
  constexpr std::uint64_t kMessage = 64 << 10, kHalf = kBenchBufferBytes / 2;
  double bits_per_ns = 0;
  with_pairs(world, options, 1, 1, 32, 0, kBenchBufferBytes, [&](Pairs& pairs) {
    for (std::size_t h = 0; h < 2; ++h) {
      world.add_app(h, "stream" + std::to_string(h), [&, h](Host&) {
        auto& side = pairs.side(h);
        Transfer transfer(*side.endpoint, *side.cqs[0], {side.qps[0].get()}, 32);
        const auto nanoseconds = transfer.run(Transfer::Direction::kWrite, pairs.range(h, h * kHalf, kHalf), kMessage);
        bits_per_ns += 8.0 * static_cast<double>(kHalf) / static_cast<double>(nanoseconds);
      });
    }
  });
  return bits_per_ns / 2 / (options.wire.rate_gbps * wire_payload_share(kMessage, kBenchMtu, false));
}

double goodput_fraction_both_ways(World& world, const WorldOptions& options) {
  Stream stream;
  stream.both_ways = true;
  stream.messages = kBenchBufferBytes / 2 / stream.message;
  stream.queue_depth = stream.outstanding = 32;
  const double allowed = 8.0 * static_cast<double>(stream.message) /
                         (static_cast<double>(8 * write_wire_bytes(stream.message, stream.mtu)) +
                          8.0 * static_cast<double>(ack_wire_bytes()) / stream.outstanding);
  return run_stream(world, options, stream).gbps() / (options.wire.rate_gbps * allowed);
}

}  // namespace rnic::testbench
