#pragma once

#include "driver/ndk/adapter.hpp"
#include "driver/umd/protection_domain.hpp"

namespace rnic::ndk {

/// NDK_PD.
class ProtectionDomain final : public ObjectOf<NDK_PD, ProtectionDomain> {
 public:
  /// NDK_FN_CREATE_PD.
  static NTSTATUS create(NDK_ADAPTER* adapter, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_PD** pd);

  [[nodiscard]] Adapter& adapter() const { return adapter_; }
  [[nodiscard]] calls::Handle handle() const { return domain_->handle(); }
  /// As the device knows it.
  [[nodiscard]] std::uint32_t number() const { return domain_->number(); }

 private:
  ProtectionDomain(Adapter& adapter, std::unique_ptr<umd::ProtectionDomain> domain);
  static NTSTATUS make(Adapter& adapter, NDK_OBJECT_HEADER*& header);
  static VOID privileged_token(NDK_PD* pd, UINT32* token);
  static const NDK_PD_DISPATCH kDispatch;
  void end() override;

  Adapter& adapter_;
  std::unique_ptr<umd::ProtectionDomain> domain_;
};

}  // namespace rnic::ndk
