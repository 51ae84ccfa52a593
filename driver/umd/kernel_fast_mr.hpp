#pragma once

#include <atomic>
#include <cstdint>

#include "driver/fast_registration.hpp"
#include "driver/umd/kernel_object.hpp"

namespace rnic::umd {

struct FastMrSpec {
  calls::Handle pd{};         ///< 0: the process's first
  std::uint32_t max_pages{};  ///< Longest page list, 1 to Limits::max_fast_pages
  bool remote_access{};       ///< May be registered with remote rights
  bool window_bind{};         ///< Windows may be bound to it
};

/// A fast-register memory region: of the kernel's own clients only. Work requests register and invalidate it; the
/// kernel driver keeps the page lists, which the device reads for as long as a registration lasts. Thread safe.
class KernelFastMr final : public KernelObject {
 public:
  /// Key of the newest registration that was posted. Before the first: one that opens nothing. Never 0.
  [[nodiscard]] std::uint32_t key() const { return key_; }

  /// Makes everything ready for a FastRegister request: draws a key that no registration that still has its list uses,
  /// and copies the page list, unless it is short enough to go in the request, which has room for `inline_pages`, and
  /// on chip. Errors: kInvalidParameter (decisions 39: page count, page addresses, first offset, length
  /// or base, a remote write right without local write), kAccessViolation (decisions 21: a remote right, but no
  /// remote_access), kOutOfMemory, kOutOfResources (too many registrations have their list).
  [[nodiscard]] Result<FastRegistration> prepare(const FastRange& range, std::uint32_t inline_pages = 0);

  /// The request for that registration has been posted: its key is key() from now on.
  void register_posted(std::uint32_t key) { key_ = key; }

  /// The device no longer uses the page list of the registration with that key: the request was not posted, or has
  /// failed or been flushed, or the registration has been invalidated (the completion says so, of the owner's request
  /// or of the peer's). Errors: kNotFound.
  Result<void> release(std::uint32_t key);

  /// What the device has of it. Errors: those of the admin queue.
  [[nodiscard]] Result<calls::QueryKey::Answer> query();

 private:
  friend class KernelObject;
  explicit KernelFastMr(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kFastMr) {}
  Result<void> begin(const calls::CreateFastMr&, const calls::CreateFastMr::Answer& answer) {
    is(answer.fast_mr);
    key_ = answer.key;
    return {};
  }

  std::atomic<std::uint32_t> key_{};
};

}  // namespace rnic::umd
