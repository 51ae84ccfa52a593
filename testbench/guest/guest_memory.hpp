#pragma once

#include <cstddef>
#include <vector>

#include "driver/remote/descriptor.hpp"
#include "model/iommu.hpp"
#include "testbench/guest/proxy_protocol.hpp"

namespace rnic::testbench {

/// The memory of a guest, as its QEMU lends it: mapped here as long as this is there.
class GuestMemory {
 public:
  GuestMemory() = default;
  /// `regions` are those of a message, `descriptors` what came beside it, one each; they are not needed afterwards.
  /// Throws GuestLinkError for one that is not of whole pages, reaches behind the end of its file, or whose file its
  /// owner could cut off under the device's feet: it is to be sealed against shrinking, as memory-backend-memfd is.
  GuestMemory(const proxy::SyncMemory& regions, const std::vector<remote::Descriptor>& descriptors);
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory();

  /// Where the device finds it.
  [[nodiscard]] const std::vector<model::Iommu::Window>& windows() const { return windows_; }
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  void unmap();

  std::vector<model::Iommu::Window> windows_;
};

}  // namespace rnic::testbench
