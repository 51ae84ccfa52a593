#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/nd2/ndtypes.h"

/// What stands behind a HANDLE on Linux: events, completion ports, overlapped files.
///
/// A handle is a number for an object, valid in the process until close_handle. The two low bits of a handle are
/// ignored, so a client may use bit 0 of OVERLAPPED::hEvent ("signal the event, post nothing to the port"). Requests
/// that are pending keep their objects alive, so a client may close a handle at any time.
///
/// Waiting goes through the device's node: the thread that waits takes the events of all that the process has open
/// there.
namespace rnic::nd2 {

class HandleObject {
 public:
  HandleObject() = default;
  HandleObject(const HandleObject&) = delete;
  HandleObject& operator=(const HandleObject&) = delete;
  virtual ~HandleObject() = default;
};

/// A Windows event: manual-reset events stay set until reset, others release one waiter.
class Event final : public HandleObject {
 public:
  Event(DeviceNode& node, bool manual_reset) : node_(node), manual_reset_(manual_reset) {}

  void set();
  /// The same, and whoever sees the event set sees what `with` did. `with` takes no lock.
  template <typename With>
  void set(With&& with) {
    {
      const std::lock_guard lock(mutex_);
      with();
      set_ = true;
    }
    node_.machine().wake();
  }
  void reset();
  /// Takes the event if it is set: true, and an automatic event is reset.
  bool try_take();
  /// Waits until it can be taken; false when the time is over, or the device has failed.
  bool wait(std::uint64_t timeout_ns = kForever);

 private:
  DeviceNode& node_;
  const bool manual_reset_;
  std::mutex mutex_;
  bool set_{};
};

/// A completion port: finished requests of the overlapped files bound to it, oldest first.
class CompletionPort final : public HandleObject {
 public:
  struct Packet {
    std::uintptr_t key{};
    OVERLAPPED* overlapped{};
    HRESULT status{};
  };

  explicit CompletionPort(DeviceNode& node) : node_(node) {}

  using Packets = std::list<Packet>;

  /// Throws std::bad_alloc.
  void post(const Packet& packet);
  /// Posts the packets of a list, which needs no memory. Whoever sees them sees what `with` did.
  template <typename With>
  void post(Packets&& packets, With&& with) {
    {
      const std::lock_guard lock(mutex_);
      with();
      packets_.splice(packets_.end(), packets);
    }
    node_.machine().wake();
  }
  [[nodiscard]] std::optional<Packet> try_take();
  /// Waits for a packet; nothing when the time is over, or the device has failed.
  [[nodiscard]] std::optional<Packet> take(std::uint64_t timeout_ns = kForever);

 private:
  DeviceNode& node_;
  std::mutex mutex_;
  Packets packets_;
};

/// The file on which overlapped requests of an adapter's objects are made.
class OverlappedFile final : public HandleObject {
 public:
  /// From now on finished requests also post to `port`. False if it has a port already.
  bool bind(std::shared_ptr<CompletionPort> port, std::uintptr_t key);
  /// Posts the one packet of a list, if there is a port; runs `with` in any case. As CompletionPort::post.
  template <typename With>
  void post(CompletionPort::Packets&& packet, With&& with) {
    const std::lock_guard lock(mutex_);
    if (port_ == nullptr) return with();
    packet.front().key = key_;
    port_->post(std::move(packet), std::forward<With>(with));
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<CompletionPort> port_;
  std::uintptr_t key_{};
};

/// Makes a handle for `object`.
[[nodiscard]] HANDLE open_handle(std::shared_ptr<HandleObject> object);
/// False if there is no such handle.
bool close_handle(HANDLE handle);
/// The object of a handle; null if there is none.
[[nodiscard]] std::shared_ptr<HandleObject> find_handle(HANDLE handle);

/// The object of a handle, null if there is none of that class.
template <typename T>
[[nodiscard]] std::shared_ptr<T> find_handle_as(HANDLE handle) {
  return std::dynamic_pointer_cast<T>(find_handle(handle));
}

[[nodiscard]] HANDLE create_event(DeviceNode& node, bool manual_reset = true);
[[nodiscard]] HANDLE create_completion_port(DeviceNode& node);

}  // namespace rnic::nd2
