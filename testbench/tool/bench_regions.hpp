#pragma once

#include "testbench/world.hpp"

namespace rnic::testbench {

/// 64-byte Writes over 16 queue pairs, four threads, each from a random one of 256 regions of 512 KiB to a random one
/// of as many of the peer: far more pages than the NIC keeps translations of. Messages per microsecond. Throws what
/// World::run throws, and EndpointError.
double random_address_write_rate(World& world, const WorldOptions& options);

/// A 64-byte Write that waits for no other, from posting to completion: the mean of 64.
struct TouchTimes {
  double first_ns = 0;  ///< Nothing has touched its regions, here or there, before
  double warm_ns = 0;   ///< The same Write once more
};
/// Throws as above.
TouchTimes write_touch_times(World& world, const WorldOptions& options);

}  // namespace rnic::testbench
