#pragma once

#include <cstdint>

#include "testbench/roce_frame.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// What a hand-made frame is about on the two hosts at hand.
struct FrameTarget {
  roce::RoceFields path;        ///< Of a packet of the real peer
  std::uint32_t first_psn = 0;  ///< Of the requests that the frame belongs to
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t source_qpn = 0;  ///< Of the DETH
  std::uint64_t payload = 0;     ///< Pattern of the payload
};

/// The frame, without frame check sequence.
[[nodiscard]] roce::Bytes build_frame(const VectorFrame& frame, const FrameTarget& target);

}  // namespace rnic::testbench
