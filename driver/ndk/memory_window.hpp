#pragma once

#include <memory>

#include "driver/ndk/protection_domain.hpp"
#include "driver/umd/kernel_mw.hpp"

namespace rnic::ndk {

/// NDK_MW: serves the queue pair on which it was bound (type 2B).
class MemoryWindow final : public ObjectOf<NDK_MW, MemoryWindow> {
 public:
  /// NDK_FN_CREATE_MW.
  static NTSTATUS create(NDK_PD* pd, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_MW** mw);

  [[nodiscard]] const ProtectionDomain& pd() const { return pd_; }
  [[nodiscard]] umd::KernelMw& kernel_mw() const { return *window_; }

 private:
  MemoryWindow(ProtectionDomain& pd, std::unique_ptr<umd::KernelMw> window);
  static UINT32 remote_token(NDK_MW* mw);
  static const NDK_MW_DISPATCH kDispatch;
  void end() override;

  ProtectionDomain& pd_;
  std::unique_ptr<umd::KernelMw> window_;
};

}  // namespace rnic::ndk
