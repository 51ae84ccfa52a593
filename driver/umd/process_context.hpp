#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "driver/device.hpp"
#include "driver/generated/host_interface.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/mmio.hpp"
#include "driver/spin_lock.hpp"

namespace rnic::umd {

/// What a process owns on a device: a user access region and a protection domain. Everything that it creates
/// belongs to them, and the device lets it reach nothing else.
class ProcessContext {
 public:
  /// A device that has failed is brought up again first (KernelDevice::recover). Errors: kOutOfResources, kOutOfMemory,
  /// those of recover. `kernel` must outlive the context.
  static Result<std::shared_ptr<ProcessContext>> open(kmd::KernelDevice& kernel);
  /// The kernel driver's own: its UAR, and a protection domain. For QP1. Errors: as open.
  static Result<std::shared_ptr<ProcessContext>> open_kernel(kmd::KernelDevice& kernel);
  ~ProcessContext();
  ProcessContext(const ProcessContext&) = delete;
  ProcessContext& operator=(const ProcessContext&) = delete;

  [[nodiscard]] kmd::KernelDevice& kernel() { return kernel_; }
  [[nodiscard]] Device& device() { return kernel_.device(); }
  /// The device has not failed since the context was opened. If it has, nothing works any more with what belongs to the
  /// context.
  [[nodiscard]] bool alive() const { return life_->alive(); }
  /// The same, and sees that the machine has taken the device away. For control functions.
  [[nodiscard]] bool usable() { return kernel_.usable(*life_); }
  /// The device has broken its promises. Lets no time pass.
  void fail() { kernel_.fail(*life_); }
  [[nodiscard]] std::uint32_t uar() const { return *uar_; }
  [[nodiscard]] std::uint32_t pd() const { return *pd_; }

  /// Writes a doorbell (offset of hw::uar). Lets no time pass.
  void ring(std::uint32_t doorbell, std::uint64_t value) { device().write64(page() + doorbell, value); }

  /// Writes a whole WQE, padded to 64 bytes, to the window: the request with its doorbell. What was stored to DMA
  /// memory before, the device sees first. One at a time, because the queue pairs of the process share the window. Lets
  /// no time pass.
  void push_wqe(std::span<const std::uint8_t> wqe) {
    const std::lock_guard lock(window_lock_);
    window_write_barrier();
    std::size_t offset = 0;
    do {
      device().write_burst64(page() + hw::uar::kWqeWindow + offset, wqe.subspan(offset).first<64>());
      window_flush_barrier();
      offset += 64;
    } while (offset < wqe.size());
  }

 private:
  explicit ProcessContext(kmd::KernelDevice& kernel) : kernel_(kernel) {}
  static Result<std::shared_ptr<ProcessContext>> open(kmd::KernelDevice& kernel, bool of_kernel);

  [[nodiscard]] std::uint64_t page() const { return std::uint64_t{*uar_} * hw::kUarPageBytes; }

  kmd::KernelDevice& kernel_;
  std::shared_ptr<kmd::DeviceLife> life_;
  std::optional<std::uint32_t> uar_;
  std::optional<std::uint32_t> pd_;
  SpinLock window_lock_;
};

}  // namespace rnic::umd
