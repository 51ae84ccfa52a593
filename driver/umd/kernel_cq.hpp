#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "driver/umd/kernel_object.hpp"

namespace rnic::umd {

/// Ring of a completion queue: entry i (modulo 2^24) is in slot (i - origin) modulo its size, and its phase is 1 on the
/// first pass.
struct CqRing {
  std::shared_ptr<std::uint8_t> memory{};
  std::uint8_t* entries{};  ///< In it
  unsigned log_depth{};
  std::uint32_t origin{};
};

/// A completion queue of the kernel driver, and its ring as the process sees it.
class KernelCq final : public KernelObject {
 public:
  [[nodiscard]] std::uint32_t cqn() const { return cqn_; }
  /// The processor whose event queue it has, if one was asked for; 0: any.
  [[nodiscard]] std::uint64_t affinity() const { return affinity_; }
  [[nodiscard]] const CqRing& ring() const { return ring_; }

  /// Gives the device a ring for at least `entries`. Entries from its origin on are written there; those before it are,
  /// or will be at once, in the present ring, which stays ring() until adopt(). One at a time. Errors:
  /// kInvalidParameter (beyond the limits), kOutOfMemory, kTooSmall (more entries are there; nothing has changed),
  /// kInvalidState (overrun), those of the admin queue. Returns the origin of the new ring.
  [[nodiscard]] Result<std::uint32_t> resize(std::uint32_t entries);
  /// Takes the new ring; entries of the present one have all been taken. Lets no time pass.
  void adopt() noexcept;
  /// Gives the ring before back. A later resize needs that.
  void give_back();

  /// An event that is due waits for `count` new entries, or until `period_us` microseconds have passed, whatever comes
  /// first; 0: not counted, no limit. Both 0, as at the beginning: at once. Errors: those of the admin queue.
  [[nodiscard]] Result<void> moderate(std::uint16_t count, std::uint16_t period_us);

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<calls::QueryCq::Answer> query();

 private:
  friend class KernelObject;
  explicit KernelCq(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kCq) {}
  Result<void> begin(const calls::CreateCq& request, const calls::CreateCq::Answer& answer);

  std::uint32_t cqn_{};
  std::uint64_t affinity_{};
  CqRing ring_;
  std::optional<CqRing> next_ring_;
};

}  // namespace rnic::umd
