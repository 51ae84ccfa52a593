#include "testbench/tool/bench_regions.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "model/random.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/tool/bench_data.hpp"
#include "testbench/tool/transfer.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPieceBytes = 64, kRegionBytes = 512 << 10;
constexpr std::uint32_t kWriters = 4, kQpsPerWriter = 4, kQpDepth = 64;

/// One host: memory that is registered `regions` times, each time with translations of its own, and queue pairs, a
/// completion queue for those of each writer.
struct RegionSide {
  RegionSide(Host& host, std::uint64_t number, std::uint32_t count) : endpoint(host) {
    memory = static_cast<std::uint8_t*>(host.memory().allocate(kRegionBytes));
    fill_bench_data({memory, kRegionBytes}, number);
    for (std::uint32_t i = 0; i < count; ++i)
      regions.push_back(endpoint.register_memory(memory, kRegionBytes, ND_MR_FLAG_ALLOW_REMOTE_WRITE));
    for (std::uint32_t i = 0; i < kWriters; ++i) {
      cqs.push_back(endpoint.create_cq(kQpsPerWriter * kQpDepth));
      for (std::uint32_t k = 0; k < kQpsPerWriter; ++k)
        qps.push_back(endpoint.create_qp(*cqs[i], *cqs[i], {16, kQpDepth, 1, 1, 0, nullptr}));
    }
  }

  Endpoint endpoint;
  std::uint8_t* memory = nullptr;
  std::vector<ComPtr<IND2MemoryRegion>> regions;
  std::vector<ComPtr<IND2CompletionQueue>> cqs;
  std::vector<ComPtr<IND2QueuePair>> qps;
};
using RegionSides = std::array<std::unique_ptr<RegionSide>, 2>;

/// The bytes at `offset` of both memories, from region `from` here to region `to` there.
Transfer::Range piece(const RegionSides& sides, std::uint64_t offset, std::size_t from, std::size_t to) {
  const auto& [here, there] = sides;
  return {here->memory + offset,
          here->regions[from]->GetLocalToken(),
          reinterpret_cast<std::uint64_t>(there->memory) + offset,
          there->regions[to]->GetRemoteToken(),
          kPieceBytes,
          0};
}

/// Sets both hosts up, runs what `apps` adds, and takes them down. The first `moved` bytes must have moved then.
void with_regions(World& world, const WorldOptions& options, std::uint32_t count, std::uint64_t moved,
                  const std::function<void(const RegionSides&)>& apps) {
  world.reset(options);
  RegionSides sides;
  for (std::size_t h = 0; h < 2; ++h) {
    world.add_app(h, "setup" + std::to_string(h),
                  [&, h](Host& host) { sides[h] = std::make_unique<RegionSide>(host, h, count); });
  }
  world.run();
  world.add_app(0, "connect", [&](Host&) {
    for (std::size_t i = 0; i < sides[0]->qps.size(); ++i)
      connect_pair(sides[0]->endpoint, *sides[0]->qps[i], sides[1]->endpoint, *sides[1]->qps[i], {});
  });
  world.run();
  apps(sides);
  world.run();
  for (std::size_t h = 0; h < 2; ++h) {
    world.add_app(h, "close" + std::to_string(h), [&, h](Host& host) {
      host.device().elapse(kInFlightNs);
      if (h == 0) require_moved({sides[0]->memory, moved}, {sides[1]->memory, moved});
      host.device().elapse(kInFlightNs);
      sides[h].reset();
    });
  }
  world.run();
}

/// Posts each Range to the writer's queue pairs in turn, as many as they take, and takes the completions.
void write_all(const RegionSides& sides, std::uint32_t writer, const std::vector<Transfer::Range>& ranges) {
  constexpr std::uint64_t kIdleNs = 50;
  auto& side = *sides[0];
  std::array<std::uint32_t, kQpsPerWriter> outstanding{};
  std::array<ND2_RESULT, 32> results{};
  for (std::size_t posted = 0, done = 0; done < ranges.size();) {
    for (; posted < ranges.size() && outstanding[posted % kQpsPerWriter] < kQpDepth; ++posted) {
      const auto& range = ranges[posted];
      const ND2_SGE sge{range.local, static_cast<ULONG>(range.bytes), range.local_token};
      const auto qp = posted % kQpsPerWriter;
      require_success(side.qps[writer * kQpsPerWriter + qp]->Write(reinterpret_cast<void*>(qp), &sge, 1, range.remote,
                                                                   range.remote_token, 0),
                      "IND2QueuePair::Write");
      ++outstanding[qp];
    }
    const auto look = side.endpoint.host().device().look();
    const ULONG count = side.cqs[writer]->GetResults(results.data(), results.size());
    for (ULONG i = 0; i < count; ++i) {
      require_success(results[i].Status, "a Write of the benchmark");
      --outstanding[reinterpret_cast<std::uintptr_t>(results[i].RequestContext)];
    }
    done += count;
    if (count == 0) side.endpoint.host().device().look_again(look, kIdleNs);
  }
}

}  // namespace

double random_address_write_rate(World& world, const WorldOptions& options) {
  constexpr std::uint32_t kRegions = 256;
  constexpr std::uint64_t kPieces = kRegionBytes / kPieceBytes;
  // Every piece once, so that all of the memory must be equal in the end.
  model::Random random(options.seed, "bench regions");
  std::vector<std::uint64_t> order(kPieces);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = kPieces; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::uint64_t first = ~0ULL, last = 0;
  with_regions(world, options, kRegions, kRegionBytes, [&](const RegionSides& sides) {
    for (std::uint32_t w = 0; w < kWriters; ++w) {
      std::vector<Transfer::Range> ranges;
      for (std::size_t i = w; i < kPieces; i += kWriters)
        ranges.push_back(piece(sides, order[i] * kPieceBytes, random.below(kRegions), random.below(kRegions)));
      world.add_app(0, "writer" + std::to_string(w), [&, w, ranges = std::move(ranges)](Host& host) {
        first = std::min(first, host.device().now_ns());
        write_all(sides, w, ranges);
        last = std::max(last, host.device().now_ns());
      });
    }
  });
  return static_cast<double>(kPieces) * 1000.0 / static_cast<double>(last - first);
}

TouchTimes write_touch_times(World& world, const WorldOptions& options) {
  constexpr std::uint32_t kRegions = 64;
  TouchTimes times;
  with_regions(world, options, kRegions, kRegions * kPieceBytes, [&](const RegionSides& sides) {
    world.add_app(0, "writer", [&](Host&) {
      auto& side = *sides[0];
      Transfer transfer(side.endpoint, *side.cqs[0], {side.qps[0].get()}, 1);
      for (std::size_t i = 0; i < kRegions; ++i) {
        const auto range = piece(sides, i * kPieceBytes, i, i);
        times.first_ns += static_cast<double>(transfer.run(Transfer::Direction::kWrite, range, kPieceBytes)) / kRegions;
        times.warm_ns += static_cast<double>(transfer.run(Transfer::Direction::kWrite, range, kPieceBytes)) / kRegions;
      }
    });
  });
  return times;
}

}  // namespace rnic::testbench
