#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

struct MrSpec {
  const void* address{};  ///< First byte; need not be aligned
  std::size_t length{};   ///< 1 to Limits::max_region
  std::uint32_t pd{};
  bool local_write{};
  bool remote_read{};
  bool remote_write{};   ///< Needs local_write
  bool remote_atomic{};  ///< Needs local_write
  bool window_bind{};    ///< Windows may be bound to it
};

/// A registered memory region: its pages are pinned and mapped, and the device accepts its key.
class KernelMr {
 public:
  ~KernelMr();
  KernelMr(const KernelMr&) = delete;
  KernelMr& operator=(const KernelMr&) = delete;

  /// Local and remote key: index in bits 31:8, tag in bits 7:0. Never 0.
  [[nodiscard]] std::uint32_t key() const { return key_; }

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminMrState> query();

  /// Destroys it now; the destructor then does nothing. When it returns success no DMA for the key can start or is
  /// under way, and the pages are unpinned. Errors: kBusy (windows are bound to it; it stays), those of the
  /// admin queue. If the device does not answer, the pages stay pinned, because they may still be written to.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  KernelMr(KernelDevice& kernel, const MrSpec& spec, std::uint32_t key, DmaBlock list,
           std::vector<std::uint64_t> pages)
      : kernel_(kernel), spec_(spec), key_(key), list_(list), pages_(std::move(pages)) {}

  KernelDevice& kernel_;
  const MrSpec spec_;
  const std::uint32_t key_;
  const DmaBlock list_;
  const std::vector<std::uint64_t> pages_;
  bool live_ = true;
};

}  // namespace rnic::kmd
