#pragma once

#include "testbench/tool/statistics.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// 64-byte Writes from posting to completion, eight at once on queue pairs of their own, beside a stream of 64 KiB
/// Writes. Throws what World::run throws, and EndpointError; so do the others.
LatencySummary write_latency(World& world, const WorldOptions& options);
/// 8-byte Write ping-pong on polled memory: half of the round trip, nanoseconds.
double half_round_trip(World& world, const WorldOptions& options);
/// From the clock cycle in which the NIC accepts the TLP that posts an 8-byte inline Write to the one in which its
/// frame starts. Throws std::runtime_error when it does not come.
double doorbell_to_wire(World& world, WorldOptions options);

}  // namespace rnic::testbench
