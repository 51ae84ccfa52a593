#pragma once

#include "model/reference/memory.hpp"
#include "model/reference/qp.hpp"

namespace rnic::reference {

/// How payload fared between host memory and a list of segments.
struct Moved {
  Status status = Status::Success;  ///< LocProtErr: a key; FatalErr: DMA; LocLenErr: it does not fit
  Xlate xlate{};
  Bytes bytes;               ///< Gathered; with an error, what is in front of it
  std::vector<KeyUse> uses;  ///< Until the bytes have been used
};

/// Reads `bytes` bytes from `offset` on, of what `segments` name together.
Task<Moved> gather(Nic& nic, std::vector<Segment> segments, std::uint64_t offset, std::size_t bytes, Access access);
/// Writes `data` there. What comes before a segment that is refused may have been written.
Task<Moved> scatter(Nic& nic, std::vector<Segment> segments, std::uint64_t offset, Bytes data, Access access);

}  // namespace rnic::reference
