#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "testbench/endpoint.hpp"
#include "testbench/world.hpp"

/// What the system tests share: one World, its two endpoints, and connected queue pairs between them.
namespace rnic::test {

using testbench::ComPtr;
using testbench::ConnectParameters;
using testbench::Endpoint;
using testbench::Host;
using testbench::World;
using testbench::WorldOptions;

/// The World of this process, reset to `options`.
inline World& fresh_world(const WorldOptions& options) {
  static World world(options);
  world.reset(options);
  return world;
}

/// One end of a connected pair, with completion queues of its own.
struct PairEnd {
  ComPtr<IND2CompletionQueue> initiator_cq, receive_cq;
  ComPtr<IND2QueuePair> qp;
};

struct PairSpec {
  Endpoint::QpSpec qp;
  ConnectParameters connection;
};

/// A queue pair of each endpoint, connected; `ends[i]` is that of host i.
struct Pair {
  Pair(Endpoint& a, Endpoint& b, const PairSpec& spec) {
    Endpoint* endpoints[] = {&a, &b};
    for (std::size_t i = 0; i < 2; ++i) {
      ends[i].initiator_cq = endpoints[i]->create_cq(spec.qp.initiator_depth + 1);
      ends[i].receive_cq = endpoints[i]->create_cq(spec.qp.receive_depth + 1);
      ends[i].qp = endpoints[i]->create_qp(*ends[i].receive_cq, *ends[i].initiator_cq, spec.qp);
    }
    testbench::connect_pair(a, *ends[0].qp, b, *ends[1].qp, spec.connection);
  }
  PairEnd ends[2];
};

/// Takes one result, waiting at most `limit_ns` of simulated time. False: none came.
inline bool take_result(Endpoint& endpoint, IND2CompletionQueue& cq, ND2_RESULT& result,
                        std::uint64_t limit_ns = 100'000) {
  const std::uint64_t end = endpoint.device().now_ns() + limit_ns;
  while (cq.GetResults(&result, 1) == 0) {
    if (endpoint.device().now_ns() >= end) return false;
    endpoint.device().elapse(100);
  }
  return true;
}

/// Runs `body` in a thread of simulated time with both endpoints brought up.
inline void with_endpoints(World& world, const std::function<void(Endpoint&, Endpoint&)>& body,
                           std::uint64_t limit_ns = 1'000'000'000) {
  world.add_app(0, "test", [&](Host& host) {
    Endpoint a(host);
    Endpoint b(world.host(1));
    body(a, b);
  });
  world.run(limit_ns);
}

}  // namespace rnic::test
