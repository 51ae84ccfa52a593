#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

struct CqSpec {
  std::uint32_t entries{};             ///< At least so many; the ring has the next power of two
  std::uint32_t uar{};                 ///< UAR that may ring its doorbell
  std::uint64_t affinity{};            ///< KernelDevice::next_eqn
  std::shared_ptr<Account> account{};  ///< Counts its memory, if there is one
};

/// Ring of a completion queue: entry i (modulo 2^24) is in slot (i - origin) modulo its size, and its phase is 1 on the
/// first pass.
struct CqRing {
  std::shared_ptr<DmaMemory> memory{};
  unsigned log_depth{};
  std::uint32_t origin{};
};

/// A completion queue on the device, and its ring.
class KernelCq {
 public:
  ~KernelCq();
  KernelCq(const KernelCq&) = delete;
  KernelCq& operator=(const KernelCq&) = delete;

  [[nodiscard]] std::uint32_t cqn() const { return cqn_; }
  /// Of its event queue's processor, if one was asked for and has an event queue; 0: any.
  [[nodiscard]] std::uint64_t affinity() const { return affinity_; }
  [[nodiscard]] std::uint32_t uar() const { return uar_; }
  [[nodiscard]] const CqRing& ring() const { return ring_; }

  /// Gives the device a ring for at least `entries`. Entries from its origin on are written there; those before it are,
  /// or will be at once, in the present ring, which stays ring() until adopt(). Errors: kInvalidParameter
  /// (beyond the limits), kOutOfMemory, kTooSmall (more entries are there; nothing has changed), kInvalidState
  /// (overrun, or the last change has not been adopted), those of the admin queue. Returns the origin of the new ring.
  [[nodiscard]] Result<std::uint32_t> resize(std::uint32_t entries);
  /// The ring that the device writes from its origin on, until adopt().
  [[nodiscard]] const std::optional<CqRing>& next_ring() const { return next_ring_; }
  /// Takes the new ring and gives the present one back; its entries have all been taken, says the client. The memory
  /// stays until the next change or the end: the device may still have had something on its way there.
  void adopt() noexcept;

  /// An event that is due waits for `count` new entries, or until `period_us` microseconds have passed, whatever comes
  /// first; 0: not counted, no limit. Both 0, as at the beginning: at once. Errors: those of the admin queue.
  [[nodiscard]] Result<void> moderate(std::uint16_t count, std::uint16_t period_us);

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminQueueState> query();

  /// Destroys it now; the destructor then does nothing. Errors: kBusy (a queue pair uses it; it stays), those of the
  /// admin queue. Succeeds when the device has failed, see KernelDevice.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  KernelCq(KernelDevice& kernel, OwnedNumber number, const CqSpec& spec, CqRing ring)
      : kernel_(kernel),
        life_(kernel.life()),
        number_(std::move(number)),
        cqn_(number_.number().over(hw::kCqIndexBits)),
        uar_(spec.uar),
        affinity_(spec.affinity),
        account_(spec.account),
        ring_(std::move(ring)) {}

  KernelDevice& kernel_;
  const std::shared_ptr<DeviceLife> life_;
  OwnedNumber number_;
  const std::uint32_t cqn_;
  const std::uint32_t uar_;
  std::uint64_t affinity_;
  const std::shared_ptr<Account> account_;
  CqRing ring_;
  CqRing last_ring_;                 ///< Given back by the last adopt
  std::optional<CqRing> next_ring_;  ///< The device may know it already: kept until adopt
  bool live_ = false;                ///< The device has it
};

}  // namespace rnic::kmd
