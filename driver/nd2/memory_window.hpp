#pragma once

#include <memory>

#include "driver/kmd/kernel_mw.hpp"
#include "driver/nd2/com_object.hpp"
#include "driver/umd/process_context.hpp"

namespace rnic::nd2 {

/// IND2MemoryWindow: a window of type 2B. IND2QueuePair::Bind and Invalidate work on it; its last release unbinds it.
class MemoryWindow final : public ComObject<IND2MemoryWindow, MemoryWindow> {
 public:
  static constexpr IID kInterface = IID_IND2MemoryWindow;
  static constexpr IID kClass{0x7C0D0D63, 0x2E1C, 0x4E0B, {0x9B, 0x53, 0x1D, 0x0C, 0x7B, 0x8A, 0x66, 0x05}};

  MemoryWindow(std::shared_ptr<umd::ProcessContext> process, std::unique_ptr<kmd::KernelMw> window)
      : process_(std::move(process)), window_(std::move(window)) {}

  /// Of the newest Bind that was posted, in network order.
  UINT32 GetRemoteToken() override;

  void on_final_release();

  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }
  [[nodiscard]] kmd::KernelMw& kernel_mw() { return *window_; }

 private:
  const std::shared_ptr<umd::ProcessContext> process_;
  const std::unique_ptr<kmd::KernelMw> window_;
};

}  // namespace rnic::nd2
