#include "testbench/tool/bench_pairs.hpp"

#include "testbench/tool/bench_data.hpp"

namespace rnic::testbench {

Pairs::Pairs(World& world, std::uint32_t qps, std::uint32_t per_cq, ULONG depth, ULONG inline_bytes,
             const ConnectParameters& connection) {
  for (std::size_t h = 0; h < 2; ++h) {
    auto& side = sides_[h];
    side.endpoint = std::make_unique<Endpoint>(world.host(h));
    for (std::uint32_t i = 0; i < qps; ++i) {
      if (i % per_cq == 0) side.cqs.push_back(side.endpoint->create_cq(depth * per_cq + 16));
      auto& cq = *side.cqs.back();
      side.qps.push_back(side.endpoint->create_qp(cq, cq, {16, depth, 1, 1, inline_bytes, nullptr}));
    }
    side.buffer = static_cast<std::uint8_t*>(world.host(h).memory().allocate(kBenchBufferBytes));
    fill_bench_data({side.buffer, kBenchBufferBytes}, h);
    side.region = side.endpoint->register_memory(side.buffer, kBenchBufferBytes,
                                                 ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ);
  }
  for (std::uint32_t i = 0; i < qps; ++i)
    connect_pair(*sides_[0].endpoint, *sides_[0].qps[i], *sides_[1].endpoint, *sides_[1].qps[i], connection);
}

Transfer::Range Pairs::range(std::size_t host, std::uint64_t offset, std::uint64_t bytes, ULONG flags) {
  auto& here = sides_[host];
  auto& there = sides_[1 - host];
  return {here.buffer + offset,
          here.region->GetLocalToken(),
          reinterpret_cast<std::uint64_t>(there.buffer) + offset,
          there.region->GetRemoteToken(),
          bytes,
          flags};
}

void with_pairs(World& world, const WorldOptions& options, std::uint32_t qps, std::uint32_t per_cq, ULONG depth,
                ULONG inline_bytes, std::uint64_t moved, const std::function<void(Pairs&)>& apps,
                const ConnectParameters& connection) {
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

}  // namespace rnic::testbench
