#pragma once

#include <cstdint>

#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

/// Owns a protection domain: an unpredictable 24-bit number. What belongs to it on the device keeps it.
class ProtectionDomain {
 public:
  /// Of KernelDevice::acquire_pd. `kernel` outlives it.
  ProtectionDomain(KernelDevice& kernel, std::uint32_t number) : kernel_(kernel), number_(number) {}
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;
  ~ProtectionDomain() { kernel_.release_pd(number_); }

  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  KernelDevice& kernel_;
  const std::uint32_t number_;
};

}  // namespace rnic::kmd
