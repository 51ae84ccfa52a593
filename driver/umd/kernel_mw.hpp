#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver/fresh_numbers.hpp"
#include "driver/generated/host_interface.hpp"
#include "driver/umd/kernel_object.hpp"
#include "driver/umd/window_keys.hpp"

namespace rnic::umd {

struct MwSpec {
  calls::Handle pd{};  ///< 0: the process's first
  /// kWindow2 (type 2B) serves only the QP on which it was bound; kWindow1 every QP of its protection domain
  /// (InfiniBand specification 10.6.7.2).
  hw::MptType type{hw::MptType::kWindow2};
};

/// A memory window. It is bound and unbound by work requests; the process draws the tags.
///
/// Each bind gets a key of its own, which is fixed when the request is posted and which the device accepts only once it
/// has executed (decisions 17): draw a key, note it in keys(), post the bind with it, and note what became of it.
/// Thread safe.
class KernelMw final : public KernelObject {
 public:
  [[nodiscard]] hw::MptType type() const { return type_; }

  /// Key of the newest bind that was posted and has not failed. Before the first: one that opens nothing. Never 0.
  [[nodiscard]] std::uint32_t key() const { return keys_->newest(); }

  /// A key for the next bind, with another tag than those that the window has or may get, and than the last that were
  /// drawn (FreshNumbers). A key that is not used in the end opens nothing.
  [[nodiscard]] std::uint32_t draw_key();

  /// Outlives the window where binds are under way.
  [[nodiscard]] const std::shared_ptr<WindowKeys>& keys() const { return keys_; }

  /// What the device has of it. Errors: those of the admin queue.
  [[nodiscard]] Result<calls::QueryKey::Answer> query();

 private:
  friend class KernelObject;
  static constexpr unsigned kTagBits = 8;
  explicit KernelMw(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kMw) {}
  Result<void> begin(const calls::CreateMw& request, const calls::CreateMw::Answer& answer);

  hw::MptType type_{};
  std::shared_ptr<WindowKeys> keys_ = std::make_shared<WindowKeys>(0);
  FreshNumbers tags_{0, kTagBits};
  std::atomic<std::uint64_t> draws_{};
};

}  // namespace rnic::umd
