#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "driver/umd/kernel_object.hpp"

namespace rnic::umd {

struct MrSpec {
  const void* address{};  ///< First byte; need not be aligned
  std::size_t length{};   ///< 1 to Limits::max_region
  calls::Handle pd{};     ///< 0: the process's first
  bool local_write{};
  bool read_sink{};  ///< Reads may write to it though local_write is false; nothing else may (decisions 57)
  bool remote_read{};
  bool remote_write{};   ///< Needs local_write
  bool remote_atomic{};  ///< Needs local_write
  bool window_bind{};    ///< Windows may be bound to it
  /// Under which requests name its first byte; the same place in a page as `address`. None: its address.
  std::optional<std::uint64_t> iova{};
};

/// What a region is to have instead.
struct MrChange {
  bool translation{};  ///< address, length, iova
  bool pd{};
  bool access{};  ///< The rights
};

/// A registered memory region. One that goes while windows are bound to it belongs to the kernel driver until they are
/// not.
class KernelMr final : public KernelObject {
 public:
  /// Local and remote key: index in bits 31:8, tag in bits 7:0. Never 0.
  [[nodiscard]] std::uint32_t key() const { return key_; }

  /// Takes what `change` names from `spec`; the key is another then (ibv_rereg_mr). Errors: those of create_mr, kBusy
  /// (windows are bound to it); nothing has changed then.
  [[nodiscard]] Result<void> reregister(const MrChange& change, const MrSpec& spec);

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<calls::QueryKey::Answer> query();

  /// Its end begins; as ProcessContext::begin_mr, whose sink hears of it. When it succeeds it has `ended`; kBusy:
  /// windows are bound to it, and it stays. Errors: kBusy (something is under way), kDeviceFailed.
  [[nodiscard]] Result<void> begin_destroy(std::uint32_t number);
  /// The kernel driver has it no more. Lets no time pass.
  void ended() { is(0); }

 private:
  friend class KernelObject;
  explicit KernelMr(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kMr) {}
  template <typename Request>
  Result<void> begin(const Request&, const typename Request::Answer& answer) {
    is(answer.mr);
    key_ = answer.key;
    return {};
  }

  std::uint32_t key_{};
};

}  // namespace rnic::umd
