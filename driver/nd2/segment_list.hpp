#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "driver/generated/host_interface.hpp"
#include "driver/nd2/ndspi.h"
#include "driver/umd/request.hpp"

namespace rnic::nd2 {

/// Segments of a request. One more than any queue takes, so that a longer list is still seen as too long.
class SegmentList {
 public:
  SegmentList(const ND2_SGE sge[], ULONG count) : count_(std::min<std::size_t>(count, list_.size())) {
    for (std::size_t i = 0; i < count_; ++i) {
      list_[i] = {.address = reinterpret_cast<std::uintptr_t>(sge[i].Buffer),
                  .length = sge[i].BufferLength,
                  .key = sge[i].MemoryRegionToken};
    }
  }
  [[nodiscard]] std::span<const umd::Segment> span() const { return std::span(list_).first(count_); }

 private:
  std::array<umd::Segment, hw::kMaxSge + 1> list_;
  std::size_t count_;
};

}  // namespace rnic::nd2
