#pragma once

#include <cstdint>

#include "driver/device.hpp"

namespace rnic::kmd {

/// Where the register blocks of page 0 are. Found by walking the chain of block headers, so that the driver
/// does not depend on their places; registers are addressed relative to the header of their block.
class RegisterMap {
 public:
  /// Errors: kDeviceNotFound (nothing answers, wrong magic, block missing, broken chain), kVersionMismatch.
  static Result<RegisterMap> discover(Device& device);

  /// Offset in BAR0 of a register, given by its constant of hw::reg and its block's header constant.
  [[nodiscard]] std::uint64_t identity(std::uint32_t reg) const;
  [[nodiscard]] std::uint64_t admin(std::uint32_t reg) const;
  [[nodiscard]] std::uint64_t port(std::uint32_t reg) const;
  [[nodiscard]] bool has_msix() const { return has_msix_; }
  [[nodiscard]] bool has_counters() const { return has_counters_; }
  [[nodiscard]] std::uint16_t vendor_id() const { return vendor_id_; }
  [[nodiscard]] std::uint16_t device_id() const { return device_id_; }

 private:
  std::uint64_t identity_{};
  std::uint64_t admin_{};
  std::uint64_t port_{};
  bool has_msix_{};
  bool has_counters_{};
  std::uint16_t vendor_id_{};
  std::uint16_t device_id_{};
};

}  // namespace rnic::kmd
