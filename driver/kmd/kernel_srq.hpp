#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

struct SrqSpec {
  std::uint32_t pd{};   ///< Protection domain of the buffers, whatever queue pair takes them
  std::uint32_t uar{};  ///< UAR that may ring its doorbell
  unsigned log_depth{};
  unsigned log_stride{};
  std::uint64_t affinity{};            ///< KernelDevice::next_eqn
  std::shared_ptr<Account> account{};  ///< Counts its memory, if there is one
};

/// A shared receive queue on the device, and its ring.
class KernelSrq {
 public:
  ~KernelSrq();
  KernelSrq(const KernelSrq&) = delete;
  KernelSrq& operator=(const KernelSrq&) = delete;

  [[nodiscard]] std::uint32_t srqn() const { return srqn_; }
  /// Of its event queue's processor, if one was asked for and has an event queue; 0: any.
  [[nodiscard]] std::uint64_t affinity() const { return affinity_; }
  [[nodiscard]] unsigned log_depth() const { return log_depth_; }
  [[nodiscard]] unsigned log_stride() const { return log_stride_; }
  [[nodiscard]] const std::shared_ptr<DmaMemory>& ring() const { return rings_.back(); }

  /// One event kSrqLimit once the device has fewer requests left than `limit`, at once if it has; 0: none. Replaces
  /// the limit before. Errors: those of the admin queue.
  [[nodiscard]] Result<void> arm(std::uint16_t limit);

  /// A ring of 2^log_depth slots, of the same stride, takes the place of the present one. Its requests have the same
  /// indexes there: the caller has copied them and posts nothing meanwhile. It is larger than the present one. Errors:
  /// kInvalidParameter (more is posted than fits, or it is not larger), kOutOfMemory, those of the admin queue; the
  /// present ring stays then.
  [[nodiscard]] Result<void> move_to(const std::shared_ptr<DmaMemory>& ring, unsigned log_depth);

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminSrqState> query();

  /// Destroys it now; the destructor then does nothing. Errors: kBusy (a queue pair uses it; it stays), those of the
  /// admin queue. Succeeds when the device has failed, see KernelDevice.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  KernelSrq(KernelDevice& kernel, OwnedNumber number, const SrqSpec& spec, std::shared_ptr<DmaMemory> ring)
      : kernel_(kernel),
        life_(kernel.life()),
        number_(std::move(number)),
        srqn_(number_.number().over(hw::kSrqIndexBits)),
        affinity_(spec.affinity),
        log_stride_(spec.log_stride),
        log_depth_(spec.log_depth) {
    rings_.push_back(std::move(ring));
  }

  KernelDevice& kernel_;
  const std::shared_ptr<DeviceLife> life_;
  OwnedNumber number_;
  const std::uint32_t srqn_;
  std::uint64_t affinity_;
  const unsigned log_stride_;
  unsigned log_depth_;
  /// The present ring is the last. The device may still be reading requests from an earlier one, which it took just
  /// before; rings only grow, so all earlier ones together are smaller than the present one.
  std::vector<std::shared_ptr<DmaMemory>> rings_;
  bool live_ = false;  ///< The device has it
};

}  // namespace rnic::kmd
