#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "testbench/timeline/life.hpp"

namespace rnic::testbench {

/// Where a request is. Those of the peer are those of the other host.
enum class Place : std::uint8_t { kDriver, kPcie, kNic, kWire, kPeerNic, kPeerPcie, kCount };
[[nodiscard]] std::string_view name(Place place);

/// What nobody sees and the world says: how long a frame is under way, and a TLP from the NIC to the memory.
struct Flights {
  std::uint64_t wire_ps = 0, pcie_ps = 0;
};

/// A part of the way of a request.
struct Step {
  std::string_view name;
  Place place;
  /// When it is over, picoseconds; 0: it is not known, or there is none.
  std::uint64_t (*end)(const Request& request, const Flights& flights);
};
/// All that requests like this one can have, in the order in which they happen (docs/report.md). None for a Receive.
[[nodiscard]] std::span<const Step> steps_of(const Request& request);

/// A step that took time.
struct StepTime {
  std::size_t step{};  ///< Index in steps_of
  std::uint64_t from{}, to{};
};
/// Each begins where the one before has ended, from the posting on; together they are the latency. Empty for a request
/// whose posting nobody has seen.
[[nodiscard]] std::vector<StepTime> waterfall(const Request& request, const Flights& flights);

}  // namespace rnic::testbench
