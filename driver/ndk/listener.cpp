#include "driver/ndk/listener.hpp"

#include "driver/ndk/connector.hpp"

namespace rnic::ndk {
const NDK_LISTENER_DISPATCH Listener::kDispatch{.NdkCloseListener = close_object,
                                                .NdkQueryExtensionInterface = query_extension,
                                                .NdkListen = listen,
                                                .NdkGetLocalAddress = local_address,
                                                .NdkControlConnectEvents = control};

Listener::Listener(Adapter& adapter, NDK_FN_CONNECT_EVENT_CALLBACK event, PVOID event_context)
    : ObjectOf(adapter.worker(), NdkObjectTypeListener, kDispatch),
      adapter_(adapter),
      event_(event),
      event_context_(event_context),
      control_(*this, [this] { follow(); }) {
  need(adapter);
}

NTSTATUS Listener::create(NDK_ADAPTER* face, NDK_FN_CONNECT_EVENT_CALLBACK event, PVOID event_context,
                          NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_LISTENER**) {
  auto& adapter = Adapter::of(face);
  if (event == nullptr) return STATUS_INVALID_PARAMETER;
  return pend_creation(adapter, completion, context, [&adapter, event, event_context](NDK_OBJECT_HEADER*& header) {
    const auto made = or_out_of_memory([&]() -> Result<void> {
      header = (new Listener(adapter, event, event_context))->header();
      return {};
    });
    return made ? STATUS_SUCCESS : control_status(made.error());
  });
}

NTSTATUS Listener::listen(NDK_LISTENER* face, const SOCKADDR* address, ULONG length,
                          NDK_FN_REQUEST_COMPLETION completion, PVOID context) {
  auto& listener = of(face);
  const auto at = Address::from(address, length);
  if (!at) return STATUS_INVALID_ADDRESS;
  if (completion == nullptr) return STATUS_INVALID_PARAMETER;
  if (listener.begun_.exchange(true)) return STATUS_INVALID_DEVICE_STATE;
  const Address wanted = *at;
  const NTSTATUS status = pend(listener, completion, context, [&listener, wanted] {
    const NTSTATUS started = listener.start(wanted);
    if (started != STATUS_SUCCESS) listener.begun_ = false;
    return started;
  });
  if (status != STATUS_PENDING) listener.begun_ = false;
  return status;
}

NTSTATUS Listener::start(const Address& address) {
  if (const NTSTATUS bound = bind(address); bound != STATUS_SUCCESS) return bound;
  address_known_ = true;
  return wanted() ? open() : STATUS_SUCCESS;
}

/// The address is its own from now on.
NTSTATUS Listener::bind(const Address& address) {
  auto& context = *adapter_.context();
  if (!context.usable()) return STATUS_DEVICE_REMOVED;
  const auto made = context.call(calls::CreateEndpoint{.channel = adapter_.channel(), .port_space = kConnectionPorts});
  if (!made) return control_status(made.error());
  endpoint_ = made->endpoint;
  const auto bound =
      context.call(calls::BindEndpoint{.address = address.gid, .endpoint = endpoint_, .port = address.port});
  if (!bound) {
    stop();
    return address_status(bound.error());
  }
  if (!address_known_) {
    address_ = address;
    address_.port = bound->port;
  }
  return STATUS_SUCCESS;
}

NTSTATUS Listener::open() {
  const auto opened = or_out_of_memory([&]() -> Result<void> {
    adapter_.subscribe(endpoint_, this);
    const auto done = adapter_.context()->call(calls::Listen{
        .endpoint = endpoint_, .backlog = 0, .services = static_cast<std::uint8_t>(calls::Services::kRc)});
    return done ? Result<void>() : done.error();
  });
  open_ = opened.ok();
  if (open_) return STATUS_SUCCESS;
  stop();
  address_known_ = false;
  return control_status(opened.error());
}

/// Requests that wait there are refused.
void Listener::stop() {
  open_ = false;
  if (endpoint_ == 0) return;
  adapter_.subscribe(endpoint_, nullptr);
  static_cast<void>(
      adapter_.context()
          ->call(calls::Destroy{.object = endpoint_, .kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint)})
          .ok());
  endpoint_ = 0;
}

VOID Listener::control(NDK_LISTENER* face, BOOLEAN pause) {
  auto& listener = of(face);
  listener.paused_ = pause != 0;
  listener.control_.ask();
}

/// Where nobody listens the address stays this listener's all the same, so that it can go on, and until its connectors
/// have ended.
void Listener::follow() {
  if (!address_known_ || open_ == wanted()) return;
  if (open_) stop();
  // Somebody may have taken the address in the moment in which nobody had it: then there is none until it is free.
  if (endpoint_ == 0 && bind(address_) != STATUS_SUCCESS) return;
  if (wanted()) static_cast<void>(open());
}

void Listener::on_connection_event(const calls::TakeConnectionEvent::Answer& event) {
  if (static_cast<calls::ConnectionEvent>(event.type) != calls::ConnectionEvent::kConnectRequest) return;
  auto connector =
      wanted() ? Connector::make_incoming(adapter_, *this, event) : Result<Connector*>(Error::kInvalidState);
  if (connector) {
    event_(event_context_, *connector);
    return;
  }
  static_cast<void>(adapter_.context()
                        ->call(calls::Destroy{.object = event.incoming,
                                              .kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint)})
                        .ok());
}

NTSTATUS Listener::local_address(NDK_LISTENER* face, PSOCKADDR address, ULONG* length) {
  auto& listener = of(face);
  if (!listener.address_known_) return STATUS_INVALID_DEVICE_STATE;
  return listener.address_.copy_to(address, length);
}

}  // namespace rnic::ndk
