#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver/ndk/fast_keys.hpp"
#include "driver/ndk/protection_domain.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/memory_request.hpp"

namespace rnic::ndk {

/// NDK_MR: of memory that is registered (NdkRegisterMr), or of pages that requests register (NdkFastRegister), as its
/// creation said.
class MemoryRegion final : public ObjectOf<NDK_MR, MemoryRegion> {
 public:
  /// NDK_FN_CREATE_MR.
  static NTSTATUS create(NDK_PD* pd, BOOLEAN fast, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_MR** mr);

  [[nodiscard]] const ProtectionDomain& pd() const { return pd_; }
  [[nodiscard]] bool fast() const { return fast_; }
  /// Local key; 0: nothing is registered. Of a fast-register region that of the newest registration that was posted.
  [[nodiscard]] std::uint32_t key() const { return key_; }
  /// The registrations of a fast-register region, for the requests about them.
  [[nodiscard]] const std::shared_ptr<FastKeys>& keys() const { return keys_; }

  /// Makes a registration ready, whose list is in use until FastKeys gives it back. Its request has room for
  /// `inline_pages`. Errors: those of
  /// kmd::KernelFastMr::prepare, kInvalidState (it was not initialized). Needs no memory, lets no time pass.
  [[nodiscard]] Result<FastRegistration> prepare(const FastRange& range, std::uint32_t inline_pages);
  /// The request for it has been posted.
  void posted(const FastRegistration& prepared, const FastRange& range);
  /// It has not.
  void not_posted(const FastRegistration& prepared);

  /// Whether a window may be bound to that range. Errors: kAccessViolation.
  [[nodiscard]] Result<void> check_bind(std::uint64_t address, std::uint64_t length, bool write);

 private:
  enum class State : std::uint8_t { kEmpty, kChanging, kRegistered };
  struct Extent {
    std::uint64_t address{};
    std::uint64_t length{};
    bool local_write{};
  };

  MemoryRegion(ProtectionDomain& pd, bool fast);
  NTSTATUS map(void* memory, SIZE_T length, ULONG flags);
  NTSTATUS unmap();
  NTSTATUS initialize(std::uint32_t pages, bool remote_access);
  void set(std::uint32_t key, const Extent& extent);
  void end() override;

  static NTSTATUS register_memory(NDK_MR* mr, MDL* mdl, SIZE_T length, ULONG flags,
                                  NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static NTSTATUS deregister(NDK_MR* mr, NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static NTSTATUS initialize_fast(NDK_MR* mr, ULONG pages, BOOLEAN remote_access, NDK_FN_REQUEST_COMPLETION completion,
                                  PVOID context);
  static UINT32 remote_token(NDK_MR* mr);
  static UINT32 local_token(NDK_MR* mr);
  static const NDK_MR_DISPATCH kDispatch;

  ProtectionDomain& pd_;
  const bool fast_;
  std::atomic<State> state_{State::kEmpty};
  std::unique_ptr<umd::KernelMr> region_;
  std::shared_ptr<kmd::KernelFastMr> fast_region_;
  const std::shared_ptr<FastKeys> keys_;
  std::atomic<std::uint32_t> key_{};
  SpinLock lock_;  ///< Guards what requests read of the region: fast_region_, extent_
  Extent extent_{};
};

}  // namespace rnic::ndk
