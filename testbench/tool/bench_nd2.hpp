#pragma once

#include "testbench/world.hpp"

namespace rnic::testbench {

// What programs of NetworkDirect and of its kernel interface feel, in simulated time. All throw what World::run throws,
// and EndpointError.

/// 8-byte inline Sends to and fro, each side polling its completion queue: half a round trip, nanoseconds.
double send_half_round_trip(World& world, const WorldOptions& options);

/// IND2MemoryRegion::Register of 64 KiB and Deregister, one after the other on one thread: regions per second.
double registration_rate(World& world, const WorldOptions& options);

/// NdkFastRegister of 16 pages and NdkInvalidate, eight regions in turn on one queue pair: registrations per second.
double fast_registration_rate(World& world, const WorldOptions& options);

/// Connect, accept, complete, disconnect on both sides, with objects of their own, one connection after the other:
/// connections per second.
double connection_rate(World& world, const WorldOptions& options);

}  // namespace rnic::testbench
