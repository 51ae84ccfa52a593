#pragma once

#include <array>
#include <cstddef>

#include "driver/ndk/logical_memory.hpp"
#include "driver/umd/request.hpp"

namespace rnic::ndk {

static_assert(offsetof(NDK_SGE, VirtualAddress) == offsetof(umd::Segment, address));
static_assert(offsetof(NDK_SGE, Length) == offsetof(umd::Segment, length));
static_assert(offsetof(NDK_SGE, MemoryRegionToken) == offsetof(umd::Segment, key));

/// The segments of a request: where the consumer keeps them, or, if one has a logical address, in here. Of more than
/// the device takes none is looked at: the request is refused for their number.
class Segments {
 public:
  Segments(LogicalMemory& memory, calls::Handle pd, const NDK_SGE* sgl, ULONG count)
      : list_(umd::SegmentList::of(sgl, count)) {
    if (count > translated_.size()) return;
    bool logical = false;
    for (ULONG i = 0; i < count; ++i) logical = logical || sgl[i].MemoryRegionToken == kPrivilegedToken;
    if (!logical) return;
    for (ULONG i = 0; i < count; ++i) {
      translated_[i] = sgl[i].MemoryRegionToken == kPrivilegedToken
                           ? memory.translate(pd, sgl[i])
                           : umd::Segment{sgl[i].LogicalAddress, sgl[i].Length, sgl[i].MemoryRegionToken};
    }
    list_ = umd::SegmentList(translated_.data(), count);
  }
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  [[nodiscard]] const umd::SegmentList& list() const { return list_; }

 private:
  std::array<umd::Segment, 32> translated_;
  umd::SegmentList list_;
};

}  // namespace rnic::ndk
