#pragma once

#include <memory>

#include "driver/umd/kernel_mw.hpp"
#include "driver/nd2/com_object.hpp"
#include "driver/umd/process_context.hpp"

namespace rnic::nd2 {

/// IND2MemoryWindow: a window of type 2B. IND2QueuePair::Bind and Invalidate work on it; its last release unbinds it.
class MemoryWindow final : public ComObject<IND2MemoryWindow, MemoryWindow> {
 public:
  static constexpr IID kInterface = IID_IND2MemoryWindow;

  MemoryWindow(std::shared_ptr<umd::ProcessContext> process, std::unique_ptr<umd::KernelMw> window)
      : process_(std::move(process)), window_(std::move(window)) {}

  /// Of the newest Bind that was posted and has not failed (decisions 54), in network order.
  UINT32 GetRemoteToken() override;

  void on_final_release();

  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }
  [[nodiscard]] umd::KernelMw& kernel_mw() { return *window_; }

 private:
  const std::shared_ptr<umd::ProcessContext> process_;
  const std::unique_ptr<umd::KernelMw> window_;
};

}  // namespace rnic::nd2
