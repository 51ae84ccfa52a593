#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "driver/generated/kernel_calls.hpp"
#include "driver/sleep_lock.hpp"

namespace rnic::kmd {

/// What a handle of a client is of. Which other objects need it is counted, so that it stays as long as they do.
class ClientObject {
 public:
  ClientObject(Machine& machine, calls::ObjectKind kind) : lock_(machine), kind_(kind) {}
  ClientObject(const ClientObject&) = delete;
  ClientObject& operator=(const ClientObject&) = delete;
  virtual ~ClientObject() = default;

  /// Ends it on the device. `when_unbound`: a region to which windows are bound ends when they do, and a queue pair
  /// leaves its multicast groups first. Errors: kBusy, those of the admin queue; but for such groups it is as before
  /// then. Called with the lock held.
  [[nodiscard]] virtual Result<void> destroy(bool when_unbound) = 0;

  [[nodiscard]] calls::ObjectKind kind() const { return kind_; }
  /// Held by the one call that works on it.
  [[nodiscard]] SleepLock& lock() { return lock_; }

 private:
  friend class HandleTable;
  SleepLock lock_;
  const calls::ObjectKind kind_;
  // Of the table, guarded by its mutex.
  calls::Handle handle_{};
  std::uint64_t born_{};
  std::uint32_t users_{};
  bool ending_{};
};

}  // namespace rnic::kmd
