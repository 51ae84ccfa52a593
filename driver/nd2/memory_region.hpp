#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "driver/umd/kernel_mr.hpp"
#include "driver/nd2/com_object.hpp"
#include "driver/nd2/overlapped.hpp"
#include "driver/umd/process_context.hpp"

namespace rnic::nd2 {

/// IND2MemoryRegion. Registration and deregistration run in the call, then complete through the OVERLAPPED.
class MemoryRegion final : public ComObject<IND2MemoryRegion, MemoryRegion> {
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

  void on_final_release();

  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }

  /// Judges a bind to this region, and gives its key. ND_ACCESS_VIOLATION: nothing is registered, the range is not
  /// inside it, or `write` without ND_MR_FLAG_ALLOW_LOCAL_WRITE (decisions 21: no remote right is needed).
  HRESULT check_bind(const VOID* buffer, SIZE_T length, bool write, std::uint32_t& key);

 private:
  enum class State : std::uint8_t { kEmpty, kChanging, kRegistered };

  /// Owns region_ until its end, when the region is what `after` says.
  struct Change {
    ~Change() { state = after; }
    std::atomic<State>& state;
    State after;
  };

  HRESULT check(const VOID* buffer, SIZE_T length, ULONG flags) const;
  HRESULT map(const VOID* buffer, SIZE_T length, ULONG flags);

  const std::shared_ptr<umd::ProcessContext> process_;
  const std::shared_ptr<OverlappedFile> file_;
  std::atomic<State> state_{State::kEmpty};  ///< kChanging: one thread owns region_
  std::unique_ptr<umd::KernelMr> region_;
  std::atomic<std::uint32_t> key_{};  ///< 0 while nothing is registered
  /// What a bind may have of it; empty while nothing is registered.
  struct Extent {
    std::uint64_t address{};
    std::uint64_t length{};
    bool local_write{};
  };
  std::mutex extent_mutex_;
  Extent extent_;
  void set_key(std::uint32_t key, const Extent& extent);
};

}  // namespace rnic::nd2
