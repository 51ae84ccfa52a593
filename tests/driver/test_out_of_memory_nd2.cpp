// Every allocation fails once: in the provider of NetworkDirect and its helpers, and on the way to a connection.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>

#include <cstring>
#include <optional>

#include "driver/kmd/connection_service.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/nd2/adapter.hpp"
#include "driver/nd2/connector.hpp"
#include "driver/nd2/framework.hpp"
#include "driver/nd2/handles.hpp"
#include "driver/nd2/queue_pair.hpp"
#include "testbench/com_ptr.hpp"
#include "tests/driver/failing_memory.hpp"
#include "tests/driver/fake_device.hpp"
#include "tests/driver/own_address.hpp"

using namespace rnic;
using nd2::Framework;
using test::fail_each_call;
using test::FailingMemory;
using test::generic;
using test::own_address;
using testbench::ComPtr;

namespace {

constexpr std::uint16_t kPort = 9000;

/// A process with one device, 10.0.0.1, that connects to itself. The helpers are its own.
struct OneDevice {
  OneDevice() {
    kernel = kmd::KernelDevice::open(
                 device,
                 {.mac = 0x0200'0000'0001, .gids = {kmd::Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1}}})
                 .take();
    kernel->connections().attach(true);
    nodes = {&kernel->node()};
    nd2::set_framework([this]() -> Framework& { return framework; });
  }
  ~OneDevice() { nd2::set_framework({}); }
  OneDevice(const OneDevice&) = delete;
  OneDevice& operator=(const OneDevice&) = delete;

  /// What the agent and the wire do.
  void carry() {
    auto& connections = kernel->connections();
    while (const auto next = connections.next_outgoing()) connections.receive(next->remote, next->local, next->mad);
  }
  /// Until messages that were lost have come again.
  void pass_time() {
    for (int i = 0; i < 200; ++i) {
      device.elapse(10'000'000);
      kernel->connections().run_timers();
      carry();
    }
  }

  test::FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  nd2::DeviceNodes nodes;
  Framework framework{[this] { return nodes; }};
};

/// Connectors and listeners on it.
struct Ends : OneDevice {
  Ends() {
    REQUIRE(nd2::open_adapter(kernel->node(), {}, IID_IND2Adapter, adapter.put()) == ND_SUCCESS);
    REQUIRE(adapter->CreateOverlappedFile(&file) == ND_SUCCESS);
    REQUIRE(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 16, 0, 0, cq.put()) == ND_SUCCESS);
    for (auto* one : {&request, &incoming}) one->hEvent = nd2::create_event(kernel->node());
  }
  ~Ends() {
    for (auto* one : {&request, &incoming}) nd2::close_handle(one->hEvent);
    cq.reset();
    nd2::close_handle(file);
    adapter.reset();
    pass_time();
    CHECK(kernel->connections().held() == cm::Manager::Held{});
    CHECK(device.pairs.empty());
  }
  ComPtr<IND2QueuePair> make_pair() {
    ComPtr<IND2QueuePair> pair;
    REQUIRE(adapter->CreateQueuePair(IID_IND2QueuePair, cq.get(), cq.get(), nullptr, 4, 4, 1, 1, 0, pair.put()) ==
            ND_SUCCESS);
    return pair;
  }
  ComPtr<IND2Connector> make_connector() {
    ComPtr<IND2Connector> connector;
    REQUIRE(adapter->CreateConnector(IID_IND2Connector, file, connector.put()) == ND_SUCCESS);
    return connector;
  }
  ComPtr<IND2Listener> make_listener() {
    ComPtr<IND2Listener> listener;
    REQUIRE(adapter->CreateListener(IID_IND2Listener, file, listener.put()) == ND_SUCCESS);
    const auto own = own_address(kPort);
    REQUIRE(listener->Bind(generic(own), sizeof own) == ND_SUCCESS);
    REQUIRE(listener->Listen(0) == ND_SUCCESS);
    return listener;
  }
  HRESULT ask(IND2Connector& connector, IND2QueuePair& pair) {
    const auto to = own_address(kPort);
    return connector.Connect(&pair, generic(to), sizeof to, 1, 1, "?", 2, &request);
  }
  /// The call must answer `good`, or ND_INSUFFICIENT_RESOURCES, and then is made again. It may also answer `good` when
  /// an allocation has failed: a message that finds no memory is lost, as on a wire. How many failed.
  template <typename Call>
  unsigned until_good(
      HRESULT good, Call&& call, const std::function<void()>& failed = [] {}) {
    for (unsigned fail_at = 1;; ++fail_at) {
      HRESULT status{};
      {
        const FailingMemory failing(fail_at);
        status = call();
      }
      INFO("allocation " << fail_at);
      if (status == good) return fail_at - 1;
      REQUIRE(status == ND_INSUFFICIENT_RESOURCES);
      failed();
    }
  }
  /// Messages and what they lead to, with an allocation that fails.
  void carry_without_memory(unsigned fail_at) {
    const FailingMemory failing(fail_at);
    carry();
    static_cast<void>(kernel->node().takers().take_events());
  }

  ComPtr<IND2Adapter> adapter;
  HANDLE file{};
  ComPtr<IND2CompletionQueue> cq;
  OVERLAPPED request{}, incoming{};
};

}  // namespace

TEST_CASE_METHOD(OneDevice, "no memory: the provider") {
  void* object = nullptr;
  CHECK(fail_each_call(
            ND_NO_MEMORY, ND_SUCCESS,
            [&] { return DllGetClassObject(CLSID_RnicProvider, IID_IND2Provider, &(object = this)); },
            [&] {
              CHECK(object == nullptr);
              CHECK(DllCanUnloadNow() == S_OK);
            }) >= 1);
  const ComPtr<IND2Provider> provider(static_cast<IND2Provider*>(object));
  std::array<std::uint8_t, 512> room{};
  auto* const list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(room.data());
  ULONG bytes = 0;
  CHECK(fail_each_call(
            ND_NO_MEMORY, ND_SUCCESS, [&] { return provider->QueryAddressList(list, &(bytes = room.size())); },
            [&] { CHECK(room == decltype(room){}); }) >= 3);
  CHECK(list->iAddressCount == 2);
  const auto own = own_address();
  UINT64 id = 7;
  CHECK(fail_each_call(
            ND_NO_MEMORY, ND_SUCCESS, [&] { return provider->ResolveAddress(generic(own), sizeof own, &id); },
            [&] { CHECK(id == 7); }) >= 3);
  CHECK(fail_each_call(
            ND_NO_MEMORY, ND_SUCCESS, [&] { return provider->OpenAdapter(IID_IND2Adapter, id, &(object = this)); },
            [&] { CHECK(object == nullptr); }) >= 6);
  CHECK(static_cast<IND2Adapter*>(object)->Release() == 0);
}

TEST_CASE_METHOD(OneDevice, "no memory: the helpers") {
  CHECK(fail_each_call(
            ND_NO_MEMORY, ND_SUCCESS, [] { return NdStartup(); }, [] { CHECK(NdCleanup() == ND_DEVICE_NOT_READY); }) >=
        2);
  std::array<std::uint8_t, 512> room{};
  auto* const list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(room.data());
  SIZE_T bytes = 0;
  const auto own = own_address();
  sockaddr_in local{};
  const auto each = [&](unsigned least, auto&& call) {
    // Also what a provider needs that is made anew.
    CHECK(fail_each_call(ND_NO_MEMORY, ND_SUCCESS, [&] {
            NdFlushProviders();
            return call();
          }) >= least);
  };
  each(5, [&] { return NdQueryAddressList(0, list, &(bytes = room.size())); });
  CHECK(list->iAddressCount == 2);
  each(5, [&] {
    return NdResolveAddress(generic(own), sizeof own, reinterpret_cast<sockaddr*>(&local), &(bytes = sizeof local));
  });
  CHECK(std::memcmp(&local, &own, sizeof own) == 0);
  each(5, [&] { return NdCheckAddress(generic(own), sizeof own); });
  void* object = nullptr;
  each(8, [&] {
    const HRESULT status = NdOpenAdapter(IID_IND2Adapter, generic(own), sizeof own, &(object = this));
    CHECK((status == ND_SUCCESS) == (object != nullptr));
    return status;
  });
  CHECK(static_cast<IND2Adapter*>(object)->Release() == 0);
  INDAdapter* old = nullptr;
  NdFlushProviders();
  CHECK(fail_each_call(ND_NO_MEMORY, ND_INVALID_ADDRESS,
                       [&] { return NdOpenV1Adapter(generic(own), sizeof own, &old); }) >= 2);
  CHECK(NdCleanup() == ND_SUCCESS);
}

TEST_CASE_METHOD(Ends, "no memory: making, binding and listening of connectors and listeners") {
  void* object = nullptr;
  CHECK(fail_each_call(ND_NO_MEMORY, ND_SUCCESS,
                       [&] { return adapter->CreateConnector(IID_IND2Connector, file, &object); }) >= 1);
  ComPtr<IND2Connector> connector(static_cast<IND2Connector*>(object));
  CHECK(fail_each_call(ND_NO_MEMORY, ND_SUCCESS,
                       [&] { return adapter->CreateListener(IID_IND2Listener, file, &object); }) >= 1);
  ComPtr<IND2Listener> listener(static_cast<IND2Listener*>(object));
  const auto any = own_address(), own = own_address(kPort);
  CHECK(fail_each_call(ND_INSUFFICIENT_RESOURCES, ND_SUCCESS,
                       [&] { return connector->Bind(generic(any), sizeof any); }) >= 2);
  CHECK(fail_each_call(ND_INSUFFICIENT_RESOURCES, ND_SUCCESS,
                       [&] { return listener->Bind(generic(own), sizeof own); }) >= 2);
  static_cast<void>(fail_each_call(ND_INSUFFICIENT_RESOURCES, ND_SUCCESS, [&] { return listener->Listen(0); }));
  const auto waiting = make_connector();
  CHECK(fail_each_call(ND_INSUFFICIENT_RESOURCES, ND_PENDING,
                       [&] { return listener->GetConnectionRequest(waiting.get(), &incoming); }) >= 1);
  CHECK(listener->CancelOverlappedRequests() == ND_SUCCESS);
}

TEST_CASE_METHOD(Ends, "no memory: a connection that is asked for, completed and ended") {
  const auto listener = make_listener();
  const auto from = make_pair(), to = make_pair();
  const auto a = make_connector(), b = make_connector(), other = make_connector();
  CHECK(until_good(
            ND_PENDING, [&] { return ask(*a, *from); },
            [&] {
              // The queue pair is free for others.
              const auto pair = nd2::QueuePair::find(from.get());
              CHECK(pair->claim(nd2::Connector::find(other.get())));
              pair->let_go(*nd2::Connector::find(other.get()));
            }) >= 3);
  pass_time();
  REQUIRE(listener->GetConnectionRequest(b.get(), &incoming) == ND_PENDING);
  REQUIRE(listener->GetOverlappedResult(&incoming, FALSE) == ND_SUCCESS);
  OVERLAPPED accepted{}, completed{}, told{}, ended{};
  REQUIRE(b->Accept(to.get(), 1, 1, "!", 2, &accepted) == ND_PENDING);
  pass_time();
  REQUIRE(a->GetOverlappedResult(&request, FALSE) == ND_SUCCESS);
  CHECK(until_good(ND_PENDING, [&] { return a->CompleteConnect(&completed); }) >= 1);
  CHECK(a->GetOverlappedResult(&completed, FALSE) == ND_SUCCESS);
  pass_time();
  REQUIRE(b->GetOverlappedResult(&accepted, FALSE) == ND_SUCCESS);
  CHECK(until_good(ND_PENDING, [&] { return b->NotifyDisconnect(&told); }) >= 1);
  CHECK(until_good(ND_PENDING, [&] { return a->Disconnect(&ended); }) >= 1);
  pass_time();
  CHECK(a->GetOverlappedResult(&ended, FALSE) == ND_SUCCESS);
  CHECK(b->GetOverlappedResult(&told, FALSE) == ND_SUCCESS);
}

// Accept fails with nothing changed, or, when the queue pair is ready already, with the end of the connection.
TEST_CASE_METHOD(Ends, "no memory: an Accept that fails may be tried again, or the peer is refused") {
  const auto listener = make_listener();
  bool over = false;
  for (unsigned fail_at = 1; !over; ++fail_at) {
    INFO("allocation " << fail_at);
    REQUIRE(fail_at < 100);
    const auto from = make_pair(), to = make_pair();
    const auto a = make_connector(), b = make_connector();
    REQUIRE(ask(*a, *from) == ND_PENDING);
    carry();
    REQUIRE(listener->GetConnectionRequest(b.get(), &incoming) == ND_PENDING);
    REQUIRE(listener->GetOverlappedResult(&incoming, FALSE) == ND_SUCCESS);
    OVERLAPPED accepted{};
    const auto accept = [&] { return b->Accept(to.get(), 1, 1, "!", 2, &accepted); };
    HRESULT status{};
    {
      const FailingMemory failing(fail_at);
      status = accept();
      over = FailingMemory::count() < fail_at;
    }
    bool refused = false;
    if (status != ND_PENDING) {
      REQUIRE(status == ND_INSUFFICIENT_RESOURCES);
      status = accept();
      refused = status != ND_PENDING;
      if (refused) CHECK(status == ND_CONNECTION_INVALID);
    }
    pass_time();
    REQUIRE(a->GetOverlappedResult(&request, FALSE) == (refused ? ND_CONNECTION_REFUSED : ND_SUCCESS));
    CHECK_FALSE((over && refused));
  }
}

TEST_CASE_METHOD(Ends, "no memory: when a request, an answer, a refusal comes, it comes again") {
  const auto listener = make_listener();
  for (unsigned fail_at = 1; fail_at <= 16; ++fail_at) {
    INFO("allocation " << fail_at);
    const auto from = make_pair(), to = make_pair();
    const auto a = make_connector(), b = make_connector();
    REQUIRE(listener->GetConnectionRequest(b.get(), &incoming) == ND_PENDING);
    REQUIRE(ask(*a, *from) == ND_PENDING);
    carry_without_memory(fail_at);
    pass_time();
    if (listener->GetOverlappedResult(&incoming, FALSE) == ND_INSUFFICIENT_RESOURCES) {
      // The request has found its connector, and that no memory: the peer is refused, the connector is free.
      REQUIRE(a->GetOverlappedResult(&request, FALSE) == ND_CONNECTION_REFUSED);
      REQUIRE(listener->GetConnectionRequest(b.get(), &incoming) == ND_PENDING);
      REQUIRE(ask(*a, *from) == ND_PENDING);
      pass_time();
    }
    REQUIRE(listener->GetOverlappedResult(&incoming, FALSE) == ND_SUCCESS);
    OVERLAPPED accepted{};
    REQUIRE(b->Accept(to.get(), 1, 1, nullptr, 0, &accepted) == ND_PENDING);
    carry_without_memory(fail_at);
    pass_time();
    REQUIRE(a->GetOverlappedResult(&request, FALSE) == ND_SUCCESS);
    REQUIRE(a->Reject("no", 3) == ND_SUCCESS);
    carry_without_memory(fail_at);
    pass_time();
    CHECK(b->GetOverlappedResult(&accepted, FALSE) == ND_CONNECTION_REFUSED);
  }
}
