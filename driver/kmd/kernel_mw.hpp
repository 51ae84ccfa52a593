#pragma once

#include <cstdint>
#include <memory>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/kmd/window_keys.hpp"

namespace rnic::kmd {

struct MwSpec {
  std::uint32_t pd{};
  /// kWindow2 (type 2B) serves only the QP on which it was bound; kWindow1 every QP of its protection domain
  /// (InfiniBand specification 10.6.7.2).
  hw::MptType type{hw::MptType::kWindow2};
};

/// A memory window. It is bound and unbound by work requests; what this class owns is its index, and the tags.
///
/// Each bind gets a key of its own, which the driver fixes when the request is posted and the device accepts only once
/// it has executed (decisions 17): draw a key, note it in keys(), post the bind with it, and note what became of it.
/// Thread safe.
class KernelMw {
 public:
  ~KernelMw();
  KernelMw(const KernelMw&) = delete;
  KernelMw& operator=(const KernelMw&) = delete;

  [[nodiscard]] hw::MptType type() const { return spec_.type; }

  /// Key of the newest bind that was posted and has not failed. Before the first: one that opens nothing. Never 0.
  [[nodiscard]] std::uint32_t key() const { return keys_->newest(); }

  /// A key for the next bind, with another tag than those that the window has or may get. A key that is not used in the
  /// end opens nothing.
  [[nodiscard]] std::uint32_t draw_key();

  /// Outlives the window where binds are under way.
  [[nodiscard]] const std::shared_ptr<WindowKeys>& keys() const { return keys_; }

  /// What the device has of it. Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminMrState> query();

  /// Unbinds and destroys it now; the destructor then does nothing. When it returns success no DMA through the window
  /// can start or is under way. Errors: those of the admin queue.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  KernelMw(KernelDevice& kernel, const MwSpec& spec, OwnedNumber number)
      : kernel_(kernel),
        life_(kernel.life()),
        spec_(spec),
        number_(std::move(number)),
        keys_(std::make_shared<WindowKeys>((number_.index() << 8) | number_.tag())) {}

  KernelDevice& kernel_;
  const std::shared_ptr<DeviceLife> life_;
  const MwSpec spec_;
  OwnedNumber number_;
  const std::shared_ptr<WindowKeys> keys_;
  bool live_ = false;  ///< The device has it
};

}  // namespace rnic::kmd
