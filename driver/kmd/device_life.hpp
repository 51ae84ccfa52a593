#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "driver/kmd/admin_queue.hpp"
#include "driver/kmd/event_queue.hpp"

namespace rnic::kmd {

/// One life of the device: from its bring-up until it is closed, or fails. What was made in it ends with it, and knows
/// it by holding it; a device that is brought up again begins another. Only KernelDevice changes it.
struct DeviceLife {
  DeviceLife(Device& device, const RegisterMap& registers, std::uint64_t admin_timeout_ns, bool admin_has_vector)
      : admin(device, registers, admin_timeout_ns, admin_has_vector) {}

  /// False: the device has failed or is gone, and does nothing any more for what was made in this life.
  [[nodiscard]] bool alive() const { return failed.load(std::memory_order_acquire) == 0; }

  AdminQueue admin;
  std::vector<std::unique_ptr<EventQueue>> event_queues;  ///< Complete before anybody else knows of this life
  /// Not 0: it has ended so. Clients see this word in their own address space (open_context).
  std::atomic<std::uint32_t> failed{};
  static_assert(sizeof(failed) == 4);
  bool quiet{};  ///< The device has been reset since, and touches no memory of this life. Guarded by KernelDevice
};

}  // namespace rnic::kmd
