#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "driver/device.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::umd {

/// What a process owns on a device: a user access region and a protection domain. Everything that it creates
/// belongs to them, and the device lets it reach nothing else.
class ProcessContext {
 public:
  /// Errors: kOutOfResources. `kernel` must outlive the context.
  static Result<std::shared_ptr<ProcessContext>> open(kmd::KernelDevice& kernel);
  /// The kernel driver's own: its UAR, and a protection domain. For QP1. Errors: kOutOfResources.
  static Result<std::shared_ptr<ProcessContext>> open_kernel(kmd::KernelDevice& kernel);
  ~ProcessContext();
  ProcessContext(const ProcessContext&) = delete;
  ProcessContext& operator=(const ProcessContext&) = delete;

  [[nodiscard]] kmd::KernelDevice& kernel() { return kernel_; }
  [[nodiscard]] Device& device() { return kernel_.device(); }
  [[nodiscard]] std::uint32_t uar() const { return uar_; }
  [[nodiscard]] std::uint32_t pd() const { return pd_; }

  /// Writes a doorbell (offset of hw::uar). Lets no time pass.
  void ring(std::uint32_t doorbell, std::uint64_t value);

  /// Writes a whole WQE, padded to 64 bytes, to the window: the request with its doorbell. One at a time, because the
  /// queue pairs of the process share the window. Lets no time pass.
  void push_wqe(std::span<const std::uint8_t> wqe);

 private:
  ProcessContext(kmd::KernelDevice& kernel, std::uint32_t uar, std::uint32_t pd)
      : kernel_(kernel), uar_(uar), pd_(pd) {}

  kmd::KernelDevice& kernel_;
  const std::uint32_t uar_;
  const std::uint32_t pd_;
  std::mutex window_mutex_;
};

}  // namespace rnic::umd
