#pragma once

#include <atomic>

#include "driver/ndk/adapter.hpp"
#include "driver/ndk/address.hpp"
#include "driver/ndk/errand.hpp"

namespace rnic::ndk {

/// NDK_LISTENER. While its events are paused, and from Close on, there is no listener at its address, as far as peers
/// can see; the address is its own until it has ended, and that is when the connectors have ended that it made.
class Listener final : public ObjectOf<NDK_LISTENER, Listener>, private EndpointUser {
 public:
  /// NDK_FN_CREATE_LISTENER.
  static NTSTATUS create(NDK_ADAPTER* adapter, NDK_FN_CONNECT_EVENT_CALLBACK event, PVOID event_context,
                         NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_LISTENER** listener);

 private:
  Listener(Adapter& adapter, NDK_FN_CONNECT_EVENT_CALLBACK event, PVOID event_context);
  static NTSTATUS listen(NDK_LISTENER* listener, const SOCKADDR* address, ULONG length,
                         NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static NTSTATUS local_address(NDK_LISTENER* listener, PSOCKADDR address, ULONG* length);
  static VOID control(NDK_LISTENER* listener, BOOLEAN pause);
  static const NDK_LISTENER_DISPATCH kDispatch;

  NTSTATUS start(const Address& address);
  NTSTATUS bind(const Address& address);
  NTSTATUS open();
  void stop();
  [[nodiscard]] bool wanted() const { return !paused_ && !closing_; }
  void follow();
  void on_connection_event(const calls::TakeConnectionEvent::Answer& event) override;
  void begin_close() override {
    closing_ = true;
    control_.ask();
  }
  void end() override { stop(); }

  Adapter& adapter_;
  const NDK_FN_CONNECT_EVENT_CALLBACK event_;
  PVOID const event_context_;
  Errand control_;
  std::atomic<bool> begun_{};
  std::atomic<bool> paused_{};
  std::atomic<bool> closing_{};
  std::atomic<bool> address_known_{};
  Address address_{};  ///< With its port, once it is known
  // The worker's.
  calls::Handle endpoint_{};
  bool open_{};  ///< Peers can see it
};

}  // namespace rnic::ndk
