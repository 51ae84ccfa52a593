#pragma once

#include <cstddef>

#include "driver/nd2/ndspi.h"
#include "driver/umd/request.hpp"

namespace rnic::nd2 {

static_assert(offsetof(ND2_SGE, Buffer) == offsetof(umd::Segment, address) && sizeof(ND2_SGE::Buffer) == 8);
static_assert(offsetof(ND2_SGE, BufferLength) == offsetof(umd::Segment, length));
static_assert(offsetof(ND2_SGE, MemoryRegionToken) == offsetof(umd::Segment, key));

/// Segments of a request, where the application keeps them.
[[nodiscard]] inline umd::SegmentList segments_of(const ND2_SGE sge[], ULONG count) {
  return umd::SegmentList::of(sge, count);
}

}  // namespace rnic::nd2
