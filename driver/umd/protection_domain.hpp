#pragma once

#include "driver/umd/kernel_object.hpp"

namespace rnic::umd {

/// A protection domain of a process.
class ProtectionDomain final : public KernelObject {
 public:
  /// As the device knows it.
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  friend class KernelObject;
  explicit ProtectionDomain(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kPd) {}
  Result<void> begin(const calls::AllocPd&, const calls::AllocPd::Answer& answer) {
    is(answer.pd);
    number_ = answer.number;
    return {};
  }

  std::uint32_t number_{};
};

}  // namespace rnic::umd
