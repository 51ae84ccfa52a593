// What a NIC must keep up with: the wire, both ways at once, whatever the packets are. A lossless wire loses nothing,
// so nothing may be dropped, repaired or refused (InfiniBand specification volume 1, 9.7.5, 9.7.6: repair is for what
// the network loses).
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "testbench/nic_counters.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr std::uint64_t kPollNs = 50;
constexpr ULONG kRights = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;

/// Different for every offset, and for the two hosts.
std::uint8_t pattern(std::size_t host, std::size_t at) {
  return static_cast<std::uint8_t>((at * 2654435761u >> 13) + 89 * host);
}

/// A host's memory: what it gives (to the peer's Reads, and by its own Writes), what the peer writes, what its own
/// Reads bring.
struct Side {
  std::unique_ptr<Endpoint> endpoint;
  ComPtr<IND2CompletionQueue> cq, receive_cq;
  std::vector<ComPtr<IND2QueuePair>> qps;
  std::uint8_t* memory = nullptr;
  ComPtr<IND2MemoryRegion> region;
  std::uint64_t start_ns = 0, end_ns = 0;

  std::uint8_t* part(std::size_t i) { return memory + i * kBytes; }
};
enum Part : std::size_t { kGives, kWritten, kRead, kParts };

/// Writes the whole of its data to the peer and reads the whole of the peer's, message by message in turn over all
/// queue pairs.
void work(Side& side, Side& peer, std::size_t message, std::uint32_t depth) {
  auto& device = side.endpoint->device();
  side.start_ns = device.now_ns();
  const std::size_t total = 2 * kBytes / message;
  std::size_t posted = 0, done = 0;
  std::vector<std::uint32_t> outstanding(side.qps.size());
  std::array<ND2_RESULT, 16> results{};
  while (done < total) {
    while (posted < total && outstanding[posted / 2 % side.qps.size()] < depth) {
      const std::size_t at = posted / 2 * message, qp = posted / 2 % side.qps.size();
      const bool write = posted % 2 == 0;
      const ND2_SGE sge{side.part(write ? kGives : kRead) + at, static_cast<ULONG>(message),
                        side.region->GetLocalToken()};
      auto* const context = reinterpret_cast<void*>(qp);
      const auto remote = reinterpret_cast<std::uint64_t>(peer.part(write ? kWritten : kGives)) + at;
      const HRESULT status = write ? side.qps[qp]->Write(context, &sge, 1, remote, peer.region->GetRemoteToken(), 0)
                                   : side.qps[qp]->Read(context, &sge, 1, remote, peer.region->GetRemoteToken(), 0);
      REQUIRE(status == ND_SUCCESS);
      ++outstanding[qp];
      ++posted;
    }
    const ULONG count = side.cq->GetResults(results.data(), results.size());
    for (ULONG i = 0; i < count; ++i) {
      REQUIRE(results[i].Status == ND_SUCCESS);
      --outstanding[reinterpret_cast<std::size_t>(results[i].RequestContext)];
      ++done;
    }
    if (count == 0) device.elapse(kPollNs);
  }
  side.end_ns = device.now_ns();
}

/// Counters that are sampled at one moment fit each other, whatever the NICs are doing: no packet has passed a check
/// before it was a frame, and none is counted backwards. Returns how often it has looked.
std::size_t watch_counters(World& world, Host& host, const std::array<Side, 2>& sides) {
  const auto at = [](const std::vector<std::uint64_t>& counts, hw::Counter counter) {
    return counts.at(static_cast<std::size_t>(counter));
  };
  std::array<std::vector<std::uint64_t>, 2> before;
  std::size_t wrong = 0, looks = 0;
  for (; sides[0].end_ns == 0 || sides[1].end_ns == 0; ++looks) {
    for (std::size_t h = 0; h < 2; ++h) {
      const auto counts = world.host(h).nic().counts().value();
      wrong += at(counts, hw::Counter::kRxRoce) > at(counts, hw::Counter::kRxFrames);
      for (std::size_t i = 0; i < before[h].size(); ++i) wrong += counts[i] < before[h][i];
      before[h] = counts;
    }
    host.device().elapse(333);
  }
  CHECK(wrong == 0);
  return looks;
}

/// Payload of both directions as a share of what two wires of `gbps` can carry in packets of `mtu`.
double share(const std::array<Side, 2>& sides, std::uint32_t mtu, double gbps) {
  const auto ns = std::max(sides[0].end_ns, sides[1].end_ns) - std::min(sides[0].start_ns, sides[1].start_ns);
  constexpr double kHeaders = 14 + 20 + 8 + 12 + 4 + 24;
  return 8.0 * 2 * kBytes / static_cast<double>(ns) / (gbps * mtu / (mtu + kHeaders));
}

}  // namespace

TEST_CASE("Writes and Reads both ways at path MTU 256 fill the wire, and nothing is dropped or sent again") {
  struct Case {
    std::size_t qps, message;
    double share;
  };
  for (const auto& c : {Case{1, 64 << 10, 0.8}, Case{4, 64 << 10, 0.8}, Case{8, 4 << 10, 0.7}}) {
    INFO(c.qps << " queue pairs, messages of " << c.message);
    constexpr std::uint32_t kMtu = 256, kDepth = 16;
    WorldOptions options;
    World& world = fresh_world(options);
    std::array<Side, 2> sides;
    world.add_app(0, "setup", [&](Host&) {
      for (std::size_t h = 0; h < 2; ++h) {
        auto& side = sides[h];
        side.endpoint = std::make_unique<Endpoint>(world.host(h));
        side.cq = side.endpoint->create_cq(static_cast<ULONG>(kDepth * c.qps + 8));
        side.receive_cq = side.endpoint->create_cq(8);
        for (std::size_t i = 0; i < c.qps; ++i)
          side.qps.push_back(side.endpoint->create_qp(*side.receive_cq, *side.cq, {4, kDepth, 1, 1, 0, nullptr}));
        side.memory = static_cast<std::uint8_t*>(world.host(h).memory().allocate(kParts * kBytes));
        for (std::size_t at = 0; at < kBytes; ++at) {
          side.part(kGives)[at] = pattern(h, at);
          side.part(kWritten)[at] = side.part(kRead)[at] = 0;
        }
        side.region = side.endpoint->register_memory(side.memory, kParts * kBytes, kRights);
      }
      for (std::size_t i = 0; i < c.qps; ++i)
        connect_pair(*sides[0].endpoint, *sides[0].qps[i], *sides[1].endpoint, *sides[1].qps[i], {kMtu});
    });
    world.run();
    for (std::size_t h = 0; h < 2; ++h)
      world.add_app(h, "work", [&, h](Host&) { work(sides[h], sides[1 - h], c.message, kDepth); });
    world.add_app(0, "watch", [&](Host& host) { CHECK(watch_counters(world, host, sides) > 100); });
    world.run();
    world.add_app(0, "close", [&](Host& host) {
      host.device().elapse(50'000);  // the last ACKs
      for (std::size_t h = 0; h < 2; ++h) {
        auto& side = sides[h];
        const auto sampled = world.host(h).nic().counts().value();
        const auto by_register = testbench::read_counters(*side.endpoint);
        CHECK(sampled[static_cast<std::size_t>(hw::Counter::kRxFrames)] > 1000);
        CHECK(std::equal(sampled.begin(), sampled.end(), by_register.begin(), by_register.end()));
        for (const auto& [what, counts] : testbench::trouble(by_register)) {
          FAIL_CHECK("host " << h << " " << what << ": " << fmt::format("{}", fmt::join(counts, ", ")));
        }
        std::size_t wrong = 0;
        for (std::size_t at = 0; at < kBytes; ++at)
          wrong += side.part(kWritten)[at] != pattern(1 - h, at) || side.part(kRead)[at] != pattern(1 - h, at);
        CHECK(wrong == 0);
      }
      const double carried = share(sides, kMtu, options.wire.rate_gbps);
      std::printf("%zu queue pairs, messages of %zu: %.3f of both wires\n", c.qps, c.message, carried);
      CHECK(carried >= c.share);
      for (auto& side : sides) {
        side.region.reset();
        side.qps.clear();
        side.cq.reset();
        side.receive_cq.reset();
        side.endpoint.reset();
      }
    });
    world.run();
  }
}
