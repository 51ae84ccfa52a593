#pragma once

#include "testbench/world.hpp"

namespace rnic::testbench {

/// Goodput of a stream of RDMA Writes beside another queue pair that pipelines fetch-and-adds and SENDs, relative to
/// the goodput of the same stream alone. The SENDs come before the atomics in front of them have been executed, so the
/// responder has to keep them somewhere. Throws what World::run throws, and EndpointError.
double atomic_neighbour_goodput_fraction(World& world, const WorldOptions& options);

}  // namespace rnic::testbench
