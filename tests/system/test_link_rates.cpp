// A link that loses nothing, at every rate: nothing is ever repaired (InfiniBand specification 9.7.6.1.3, C9-139;
// decisions 45). RNIC_SEED=n replays a failure.
#include <cstdio>

#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using hw::QpCounter;

namespace {

struct Flow {
  umd::QueuePair& from;
  umd::QueuePair& to;
};

/// Writes of `bytes` bytes on `pairs` queue pairs side by side over a link of `gbps`.
void run_writes(double gbps, std::size_t pairs, std::uint32_t bytes, std::uint32_t mtu, std::uint8_t exponent) {
  INFO(gbps << " Gb/s, " << pairs << " queue pairs, MTU " << mtu << ", exponent " << int{exponent});
  auto options = WorldOptions::from_environment("link_rates");
  options.wire.rate_gbps = gbps;
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    for (std::size_t i = 0; i < UnreliableSide::kBytes; ++i) a.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    std::vector<Flow> flows;
    for (std::size_t i = 0; i < pairs; ++i) {
      flows.push_back({a.add_qp(QpType::kRc), b.add_qp(QpType::kRc)});
      testbench::connect_pair(endpoint_a, flows.back().from, endpoint_b, flows.back().to,
                              {.mtu = mtu, .ack_timeout = exponent, .retry_count = 1});
    }
    for (std::size_t i = 0; i < pairs; ++i) {
      const auto segment = a.segment(0, bytes);
      must(flows[i].from.post_send({.opcode = WqeOpcode::kWrite,
                                    .id = i,
                                    .segments = {&segment, 1},
                                    .remote_address = b.at(0),
                                    .remote_key = b.region->key()}));
    }
    const auto limit = static_cast<std::uint64_t>(4 * 8.0 * bytes * static_cast<double>(pairs) / gbps) + 1'000'000;
    for (std::size_t i = 0; i < pairs; ++i) {
      umd::Completion done;
      REQUIRE(a.poll(*a.cq, done, limit));
      CHECK(done.status == CqeStatus::kSuccess);
    }
    CHECK(std::memcmp(a.memory, b.memory, bytes) == 0);
    // Nothing lost, nothing repaired, on either side.
    for (const auto& flow : flows) {
      for (auto* qp : {&flow.from, &flow.to}) {
        const auto seen = must(qp->kernel_qp().counters(false));
        for (std::size_t i = 0; i < hw::kQpCounters; ++i) {
          INFO("counter " << i);
          CHECK(seen.counts[i] == 0);
        }
      }
    }
  });
}

}  // namespace

// The round trip of a packet and its ACK is its own way (at 1 Gb/s a frame of 4 KiB takes 33 us), the ACK's, and some 2
// us in the NICs: each exponent is beyond that, so 9.7.6.1.3 forbids a time-out. What waits in the NIC's own port does
// not count.
TEST_CASE("a Write of 256 KiB over a link that loses nothing is sent once, from 1 to 400 Gb/s") {
  for (const std::uint32_t mtu : {1024u, 4096u}) run_writes(1, 1, 256 << 10, mtu, 5);
  run_writes(10, 1, 256 << 10, 1024, 2);
  run_writes(25, 1, 256 << 10, 256, 1);
  run_writes(100, 1, 256 << 10, 4096, 1);
  run_writes(400, 1, 256 << 10, 1024, 1);
}

TEST_CASE("eight queue pairs side by side over a link that loses nothing send everything once") {
  run_writes(1, 8, 32 << 10, 1024, 4);
  run_writes(10, 8, 64 << 10, 4096, 3);
  for (const std::uint8_t exponent : {2, 3}) run_writes(100, 8, 256 << 10, 1024, exponent);
  run_writes(400, 8, 128 << 10, 4096, 2);
}
