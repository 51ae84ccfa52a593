#pragma once

#include <cstdint>
#include <memory>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

struct MwSpec {
  std::uint32_t pd{};
  /// kWindow2 (type 2B) serves only the QP on which it was bound; kWindow1 every QP of its protection domain
  /// (InfiniBand specification 10.6.7.2).
  hw::MptType type{hw::MptType::kWindow2};
};

/// A memory window. It is bound and unbound by work requests, whose tags are drawn by who posts them; what this class
/// owns is its index.
class KernelMw {
 public:
  ~KernelMw();
  KernelMw(const KernelMw&) = delete;
  KernelMw& operator=(const KernelMw&) = delete;

  [[nodiscard]] hw::MptType type() const { return spec_.type; }

  /// Index, and the tag that it began with: opens nothing. Never 0.
  [[nodiscard]] std::uint32_t key() const { return (number_.index() << 8) | number_.tag(); }

  /// What the device has of it. Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminMrState> query();

  /// Unbinds and destroys it now; the destructor then does nothing. When it returns success no DMA through the window
  /// can start or is under way. Errors: those of the admin queue.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  KernelMw(KernelDevice& kernel, const MwSpec& spec, OwnedNumber number)
      : kernel_(kernel), life_(kernel.life()), spec_(spec), number_(std::move(number)) {}

  KernelDevice& kernel_;
  const std::shared_ptr<DeviceLife> life_;
  const MwSpec spec_;
  OwnedNumber number_;
  bool live_ = false;  ///< The device has it
};

}  // namespace rnic::kmd
