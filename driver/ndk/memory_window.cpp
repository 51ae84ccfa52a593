#include "driver/ndk/memory_window.hpp"

#include <arpa/inet.h>

namespace rnic::ndk {

const NDK_MW_DISPATCH MemoryWindow::kDispatch{
    .NdkCloseMw = close_object, .NdkQueryExtensionInterface = query_extension, .NdkGetRemoteTokenFromMw = remote_token};

MemoryWindow::MemoryWindow(ProtectionDomain& pd, std::unique_ptr<umd::KernelMw> window)
    : ObjectOf(pd.worker(), NdkObjectTypeMw, kDispatch), pd_(pd), window_(std::move(window)) {
  need(pd);
}

NTSTATUS MemoryWindow::create(NDK_PD* face, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_MW**) {
  auto& pd = ProtectionDomain::of(face);
  return pend_creation(pd, completion, context, [&pd](NDK_OBJECT_HEADER*& header) {
    const auto made = or_out_of_memory([&]() -> Result<void> {
      auto window = pd.adapter().context()->create_mw({.pd = pd.handle()});
      if (!window) return window.error();
      header = (new MemoryWindow(pd, window.take()))->header();
      return {};
    });
    return made ? STATUS_SUCCESS : control_status(made.error());
  });
}

/// Decisions 25.
UINT32 MemoryWindow::remote_token(NDK_MW* mw) { return htonl(of(mw).window_->key()); }

void MemoryWindow::end() { static_cast<void>(window_->destroy().ok()); }

}  // namespace rnic::ndk
