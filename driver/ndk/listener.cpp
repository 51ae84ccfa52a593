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
  auto& context = *adapter_.context();
  const auto made = context.call(calls::CreateEndpoint{.channel = adapter_.channel(), .port_space = kConnectionPorts});
  if (!made) return control_status(made.error());
  endpoint_ = made->endpoint;
  const auto bound =
      context.call(calls::BindEndpoint{.address = address.gid, .endpoint = endpoint_, .port = address.port});
  if (!bound) {
    stop();
    return address_status(bound.error());
  }
  const auto listening = or_out_of_memory([&]() -> Result<void> {
    adapter_.subscribe(endpoint_, this);
    const auto done = context.call(calls::Listen{.endpoint = endpoint_, .backlog = 0});
    return done ? Result<void>() : done.error();
  });
  if (!listening) {
    stop();
    return control_status(listening.error());
  }
  address_ = address;
  address_.port = bound->port;
  address_known_ = true;
  return STATUS_SUCCESS;
}

/// Requests that wait there are refused.
void Listener::stop() {
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

void Listener::follow() {
  if (!address_known_) return;
  if (paused_) {
    stop();
  } else if (endpoint_ == 0) {
    static_cast<void>(start(address_));
  }
}

void Listener::on_connection_event(const calls::TakeConnectionEvent::Answer& event) {
  if (static_cast<calls::ConnectionEvent>(event.type) != calls::ConnectionEvent::kConnectRequest) return;
  auto connector =
      closing_ ? Result<Connector*>(Error::kInvalidState) : Connector::make_incoming(adapter_, event.incoming, event);
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
