#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "driver/device.hpp"
#include "driver/kmd/kernel_device.hpp"

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
  void ring(std::uint32_t doorbell, std::uint64_t value);

  /// Writes a whole WQE, padded to 64 bytes, to the window: the request with its doorbell. One at a time, because the
  /// queue pairs of the process share the window. Lets no time pass.
  void push_wqe(std::span<const std::uint8_t> wqe);

 private:
  explicit ProcessContext(kmd::KernelDevice& kernel) : kernel_(kernel) {}
  static Result<std::shared_ptr<ProcessContext>> open(kmd::KernelDevice& kernel, bool of_kernel);

  kmd::KernelDevice& kernel_;
  std::shared_ptr<kmd::DeviceLife> life_;
  std::optional<std::uint32_t> uar_;
  std::optional<std::uint32_t> pd_;
  std::mutex window_mutex_;
};

}  // namespace rnic::umd
