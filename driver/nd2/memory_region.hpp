#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "driver/event_sink.hpp"
#include "driver/nd2/com_object.hpp"
#include "driver/nd2/overlapped.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/process_context.hpp"

namespace rnic::nd2 {

/// IND2MemoryRegion.
///
/// Register pins the memory and gives the device the command; the device's answer finishes the request. Deregister is
/// the same without the pins, which go when the device has answered. A Register that is cancelled is undone; a
/// Deregister is finished by the device, whoever cancels. When the device fails, a Register that pends ends with
/// ND_DEVICE_REMOVED, a Deregister with success (decisions 58).
class MemoryRegion final : public ComObject<IND2MemoryRegion, MemoryRegion>,
                           public EventSink,
                           public win32::Cancellable {
 public:
  static constexpr IID kInterface = IID_IND2MemoryRegion;

  MemoryRegion(std::shared_ptr<umd::ProcessContext> process, std::shared_ptr<OverlappedFile> file)
      : process_(std::move(process)), file_(std::move(file)) {}

  HRESULT CancelOverlappedRequests() override;
  HRESULT GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT Register(const VOID* buffer, SIZE_T length, ULONG flags, OVERLAPPED* overlapped) override;
  HRESULT Deregister(OVERLAPPED* overlapped) override;
  UINT32 GetLocalToken() override;
  UINT32 GetRemoteToken() override;

  void on_event(const hw::Eqe& eqe) override;
  bool cancel(const OVERLAPPED* one) override;
  void on_final_release();

  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }

  /// Judges a bind to this region, and gives its key. ND_ACCESS_VIOLATION: nothing is registered, the range is not
  /// inside it, or `write` without ND_MR_FLAG_ALLOW_LOCAL_WRITE (decisions 21: no remote right is needed).
  HRESULT check_bind(const VOID* buffer, SIZE_T length, bool write, std::uint32_t& key);

 private:
  enum class State : std::uint8_t {
    kEmpty,
    kRegistering,
    kRegistered,
    kDeregistering,
    kUndoing,  ///< A registration that was cancelled
  };
  /// What a bind may have of it; empty while nothing is registered.
  struct Extent {
    std::uint64_t address{};
    std::uint64_t length{};
    bool local_write{};
  };
  /// What the device works at.
  struct Operation {
    std::uint32_t number{};  ///< Under which its answer comes
    bool asked{};            ///< The kernel driver has taken it, and the request pends
    std::optional<calls::Status> answer;
    OverlappedRequests request;
    Extent extent;
  };

  HRESULT check(const VOID* buffer, SIZE_T length, ULONG flags) const;
  Result<std::unique_ptr<umd::KernelMr>> ask(const VOID* buffer, SIZE_T length, ULONG flags);
  HRESULT begin(State from, State to, OVERLAPPED* overlapped);
  HRESULT end_without_device();
  HRESULT pend(std::unique_lock<std::mutex> lock);
  void abandon(State state);
  OverlappedRequests finish(calls::Status answer, HRESULT& status);
  void set_key(std::uint32_t key, const Extent& extent);
  HRESULT undo();

  const std::shared_ptr<umd::ProcessContext> process_;
  const std::shared_ptr<OverlappedFile> file_;
  std::mutex mutex_;  ///< Never held while time passes
  State state_ = State::kEmpty;
  Operation operation_;
  std::unique_ptr<umd::KernelMr> region_;
  Extent extent_;
  std::atomic<std::uint32_t> key_{};  ///< 0 while nothing is registered
};

}  // namespace rnic::nd2
