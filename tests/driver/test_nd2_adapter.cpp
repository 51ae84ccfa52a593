#include <catch2/catch.hpp>

#include <arpa/inet.h>

#include <cstring>

#include "driver/cm/ip_service.hpp"
#include "driver/kmd/connection_service.hpp"
#include "driver/nd2/memory_region.hpp"
#include "driver/nd2/memory_window.hpp"
#include "driver/nd2/shared_receive_queue.hpp"
#include "driver/nd2/status.hpp"
#include "testbench/com_ptr.hpp"
#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::Nd2Fixture;

TEST_CASE_METHOD(Nd2Fixture, "Query tells the limits of the device, exactly") {
  ULONG size = 0;
  CHECK(adapter->Query(nullptr, &size) == ND_BUFFER_OVERFLOW);
  CHECK(size == sizeof(ND2_ADAPTER_INFO));
  const ULONG version = GENERATE(ND_VERSION_1, ND_VERSION_2);
  ND2_ADAPTER_INFO info{};
  info.InfoVersion = version;
  size = GENERATE(96U, 500U);
  REQUIRE(adapter->Query(&info, &size) == ND_SUCCESS);
  CHECK(size == 96);
  CHECK(info.InfoVersion == version);
  CHECK(info.VendorId == 0x1AF4);
  CHECK(info.DeviceId == 0x0E1C);
  CHECK(info.AdapterId == 0x0200'0000'0001);
  CHECK(info.MaxInitiatorSge == 16);
  CHECK(info.MaxReceiveSge == 16);
  CHECK(info.MaxReadSge == 16);
  CHECK(info.MaxTransferLength == 0x80000000);
  CHECK(info.MaxInlineDataSize == 224);
  CHECK(info.InlineRequestThreshold <= info.MaxInlineDataSize);
  CHECK(info.MaxInboundReadLimit == 16);
  CHECK(info.MaxOutboundReadLimit == 16);
  CHECK(info.MaxReceiveQueueDepth == 32768);
  CHECK(info.MaxInitiatorQueueDepth == 32768);
  CHECK(info.MaxSharedReceiveQueueDepth == 32768);
  CHECK(info.MaxCompletionQueueDepth == (1U << 20) - 8);
  CHECK(info.MaxRegistrationSize == 1ULL << 47);
  CHECK(info.AdapterFlags == (ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED | ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED |
                              ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED));
  CHECK(info.MaxCallerData == 56);
  CHECK(info.MaxCalleeData == 148);
}

TEST_CASE_METHOD(Nd2Fixture, "Query refuses short buffers and unknown versions") {
  ND2_ADAPTER_INFO info{};
  std::memset(&info, 0x5A, sizeof info);
  const ND2_ADAPTER_INFO before = info;
  ULONG size = 95;
  CHECK(adapter->Query(&info, &size) == ND_BUFFER_OVERFLOW);
  CHECK(size == 96);
  CHECK(std::memcmp(&info, &before, sizeof info) == 0);
  CHECK(adapter->Query(&info, &size) == ND_INVALID_PARAMETER_1);
  CHECK(adapter->Query(nullptr, &size) == ND_INVALID_PARAMETER_1);
  CHECK(adapter->Query(nullptr, &(size = 1)) == ND_INVALID_PARAMETER_1);
}

TEST_CASE_METHOD(Nd2Fixture, "QueryAddressList packs the addresses into the caller's buffer") {
  ULONG size = 0;
  CHECK(adapter->QueryAddressList(nullptr, &size) == ND_BUFFER_OVERFLOW);
  const ULONG needed = size;
  CHECK(needed == sizeof(SOCKET_ADDRESS_LIST) + sizeof(sockaddr_in));
  std::vector<std::uint8_t> buffer(needed, 0x5A);
  auto* list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(buffer.data());
  size = needed - 1;
  CHECK(adapter->QueryAddressList(list, &size) == ND_BUFFER_OVERFLOW);
  CHECK(size == needed);
  CHECK(buffer == std::vector<std::uint8_t>(needed, 0x5A));
  REQUIRE(adapter->QueryAddressList(list, &size) == ND_SUCCESS);
  CHECK(size == needed);
  REQUIRE(list->iAddressCount == 1);
  CHECK(list->Address[0].iSockaddrLength == sizeof(sockaddr_in));
  auto* address = reinterpret_cast<sockaddr_in*>(list->Address[0].lpSockaddr);
  CHECK(reinterpret_cast<std::uint8_t*>(address) + sizeof(sockaddr_in) == buffer.data() + needed);
  CHECK(ntohl(address->sin_addr.s_addr) == 0x0A000001);
}

TEST_CASE_METHOD(Nd2Fixture, "creating a completion queue") {
  void* object = this;
  const auto create = [&](REFIID iid, HANDLE on, ULONG depth) {
    return adapter->CreateCompletionQueue(iid, on, depth, 0, 0, &object);
  };
  CHECK(create(IID_IND2QueuePair, file, 8) == E_NOINTERFACE);
  CHECK(object == nullptr);
  CHECK(create(IID_IND2CompletionQueue, nullptr, 8) == ND_INVALID_HANDLE);
  CHECK(create(IID_IND2CompletionQueue, event, 8) == ND_INVALID_HANDLE);
  CHECK(create(IID_IND2CompletionQueue, file, 0) == ND_INVALID_PARAMETER_3);
  CHECK(create(IID_IND2CompletionQueue, file, (1U << 20) - 7) == ND_INVALID_PARAMETER_3);
  device.next_status.push_back(hw::AdminStatus::kBadParameter);
  CHECK(create(IID_IND2CompletionQueue, file, 8) == ND_INVALID_PARAMETER);
  REQUIRE(create(IID_IND2CompletionQueue, file, 8) == ND_SUCCESS);
  auto* cq = static_cast<IND2CompletionQueue*>(object);
  CHECK(device.completion_queues.begin()->second.log_depth == 4);
  void* other = nullptr;
  CHECK(cq->QueryInterface(IID_IND2Overlapped, &other) == S_OK);
  CHECK(cq->QueryInterface(IID_IND2QueuePair, &other) == E_NOINTERFACE);
  CHECK(other == nullptr);
  CHECK(cq->Release() == 1);
  CHECK(cq->Release() == 0);
  CHECK(device.completion_queues.empty());
}

TEST_CASE_METHOD(Nd2Fixture, "creating a queue pair checks every parameter by its position") {
  auto* cq = make_queue();
  void* object = nullptr;
  void* second = nullptr;
  nd2::open_adapter(kernel->node(), addresses, IID_IND2Adapter, &second);
  auto* other_adapter = static_cast<IND2Adapter*>(second);
  other_adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 8, 0, 0, &second);
  auto* foreign = static_cast<IND2CompletionQueue*>(second);
  const auto create = [&](IUnknown* receive, IUnknown* initiator, ULONG rd, ULONG id, ULONG rs, ULONG is, ULONG bytes) {
    return adapter->CreateQueuePair(IID_IND2QueuePair, receive, initiator, nullptr, rd, id, rs, is, bytes, &object);
  };
  CHECK(adapter->CreateQueuePair(IID_IND2Adapter, cq, cq, nullptr, 1, 1, 1, 1, 0, &object) == E_NOINTERFACE);
  CHECK(create(nullptr, cq, 1, 1, 1, 1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(create(adapter, cq, 1, 1, 1, 1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(create(foreign, cq, 1, 1, 1, 1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(create(cq, nullptr, 1, 1, 1, 1, 0) == ND_INVALID_PARAMETER_3);
  CHECK(create(cq, foreign, 1, 1, 1, 1, 0) == ND_INVALID_PARAMETER_3);
  CHECK(create(cq, cq, 32769, 1, 1, 1, 0) == ND_INVALID_PARAMETER_5);
  CHECK(create(cq, cq, 1, 32769, 1, 1, 0) == ND_INVALID_PARAMETER_6);
  CHECK(create(cq, cq, 1, 1, 17, 1, 0) == ND_INVALID_PARAMETER_7);
  CHECK(create(cq, cq, 1, 1, 1, 17, 0) == ND_INVALID_PARAMETER_8);
  CHECK(create(cq, cq, 1, 1, 1, 1, 225) == ND_INVALID_PARAMETER_9);
  REQUIRE(create(cq, cq, 32768, 32768, 16, 16, 224) == ND_SUCCESS);
  CHECK(static_cast<IND2QueuePair*>(object)->Release() == 0);
  // Each kind of entry comes in its own queue.
  auto* const receives = make_queue();
  REQUIRE(create(receives, cq, 1, 1, 1, 1, 0) == ND_SUCCESS);
  const auto number = [](IUnknown* one) { return nd2::CompletionQueue::find(one)->core()->cqn(); };
  const auto& made = device.pairs.at(nd2::QueuePair::find(static_cast<IUnknown*>(object))->core()->qpn()).create;
  CHECK(made.receive_cqn == number(receives));
  CHECK(made.send_cqn == number(cq));
  CHECK(static_cast<IND2QueuePair*>(object)->Release() == 0);
  receives->Release();
  foreign->Release();
  other_adapter->Release();
  cq->Release();
}

TEST_CASE_METHOD(Nd2Fixture, "windows and regions are of the queue pair's adapter") {
  open_pair(true);
  void* object = nullptr;
  nd2::open_adapter(kernel->node(), addresses, IID_IND2Adapter, &object);
  auto* const other_adapter = static_cast<IND2Adapter*>(object);
  std::array<std::uint8_t, 64> memory{};
  IND2MemoryRegion* regions[2];
  IND2MemoryWindow* windows[2];
  for (int i = 0; i < 2; ++i) {
    auto* const from = i == 0 ? adapter : other_adapter;
    REQUIRE(from->CreateMemoryRegion(IID_IND2MemoryRegion, file, &object) == ND_SUCCESS);
    regions[i] = static_cast<IND2MemoryRegion*>(object);
    REQUIRE(regions[i]->Register(memory.data(), memory.size(), 0, &overlapped) == ND_PENDING);
    REQUIRE(from->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
    windows[i] = static_cast<IND2MemoryWindow*>(object);
  }
  const auto bind = [&](int region, int window) {
    return pair->Bind(nullptr, regions[region], windows[window], memory.data(), 8, ND_OP_FLAG_ALLOW_READ);
  };
  CHECK(bind(1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(bind(0, 1) == ND_INVALID_PARAMETER_3);
  CHECK(pair->Invalidate(nullptr, windows[1], 0) == ND_INVALID_PARAMETER_2);
  CHECK(bind(0, 0) == ND_SUCCESS);
  // Of a region that is not registered there is nothing to bind, not even nothing.
  auto* const empty = make_region();
  CHECK(pair->Bind(nullptr, empty, windows[0], nullptr, 0, ND_OP_FLAG_ALLOW_READ) == ND_ACCESS_VIOLATION);
  empty->Release();
  for (auto* const region : regions) region->Release();
  for (auto* const window : windows) window->Release();
  other_adapter->Release();
}

TEST_CASE_METHOD(Nd2Fixture, "what asks by OVERLAPPED is made on a file") {
  void* object = &object;
  const HANDLE none = event;  // a handle, but of no file
  CHECK(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, none, &object) == ND_INVALID_HANDLE);
  CHECK(object == nullptr);
  CHECK(adapter->CreateConnector(IID_IND2Connector, none, &object) == ND_INVALID_HANDLE);
  CHECK(adapter->CreateListener(IID_IND2Listener, nullptr, &object) == ND_INVALID_HANDLE);
}

TEST_CASE_METHOD(Nd2Fixture, "a host whose kernel driver has no QP1 makes no connections") {
  void* object = nullptr;
  REQUIRE(adapter->CreateConnector(IID_IND2Connector, file, &object) == ND_SUCCESS);
  auto* const connector = static_cast<IND2Connector*>(object);
  REQUIRE(adapter->CreateListener(IID_IND2Listener, file, &object) == ND_SUCCESS);
  auto* const listener = static_cast<IND2Listener*>(object);
  const auto* const address = reinterpret_cast<const sockaddr*>(addresses.data());
  CHECK(connector->Bind(address, sizeof(sockaddr_in)) == ND_DEVICE_NOT_READY);
  CHECK(listener->Bind(address, sizeof(sockaddr_in)) == ND_DEVICE_NOT_READY);
  CHECK(connector->Release() == 0);
  CHECK(listener->Release() == 0);
}

TEST_CASE_METHOD(Nd2Fixture, "a listener takes requests of reliable queue pairs only") {
  const kmd::Gid own{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1},
      peer{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 2};
  constexpr std::uint16_t kPort = 4000;
  REQUIRE(kernel->port_tables().add_gid(own).ok());
  REQUIRE(kernel->port_tables().add_neighbour(peer, 0x0200'0000'0002).ok());
  auto& connections = kernel->connections();
  connections.attach(true);
  testbench::ComPtr<IND2Listener> listener;
  REQUIRE(adapter->CreateListener(IID_IND2Listener, file, reinterpret_cast<void**>(listener.put())) == ND_SUCCESS);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPort);
  at.sin_addr.s_addr = htonl(0x0A000001);
  REQUIRE(listener->Bind(reinterpret_cast<const sockaddr*>(&at), sizeof at) == ND_SUCCESS);
  REQUIRE(listener->Listen(0) == ND_SUCCESS);
  cm::Req req{.service_id = cm::service_id_of(cm::PortSpace::kTcp, kPort), .qpn = 77, .path_mtu = 3};
  req.primary.local_gid = peer;
  req.primary.remote_gid = own;
  const auto header = encode(cm::IpHeader{.source_port = 5, .source = peer, .destination = own});
  std::copy(header.begin(), header.end(), req.data.begin());
  for (const auto service : {cm::Service::kUc, cm::Service::kRc}) {
    ++req.local_id;
    req.service = service;
    connections.receive(own, peer, cm::encode({req.local_id, req}));
    const auto sent = connections.next_outgoing();
    CHECK(sent.has_value() == (service == cm::Service::kUc));
    if (!sent) continue;
    const auto answer = cm::decode(sent->mad);
    REQUIRE(answer.message);
    CHECK(std::get<cm::Rej>(answer.message->body).reason == cm::Reason::kInvalidService);
  }
}

TEST_CASE_METHOD(Nd2Fixture, "a client may release parents before children, and close its file at any time") {
  auto* cq = make_queue();
  auto* qp = make_pair(cq);
  auto* region = make_region();
  std::array<std::uint8_t, 64> memory{};
  REQUIRE(region->Register(memory.data(), memory.size(), 0, &overlapped) == ND_PENDING);
  REQUIRE(qp->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  OVERLAPPED gone{};
  REQUIRE(cq->Notify(ND_CQ_NOTIFY_ANY, &gone) == ND_PENDING);
  CHECK(adapter->Release() == 0);
  adapter = nullptr;
  CHECK(region->Release() == 0);
  CHECK(cq->Release() == 0);
  CHECK(static_cast<HRESULT>(gone.Internal) == ND_CANCELED);
  gone.Internal = 0x1234;
  CHECK(nd2::close_handle(file));
  CHECK(device.completion_queues.size() == 1);  // the queue pair still uses it
  CHECK(qp->Release() == 0);
  CHECK(device.pairs.empty());
  CHECK(device.completion_queues.empty());
  CHECK(device.regions.empty());
  CHECK(device.mapped_pages == 0);
  CHECK(gone.Internal == 0x1234);
  kernel.reset();
  CHECK(device.live_allocations() == 0);
}

TEST_CASE_METHOD(Nd2Fixture, "an object of one class is never taken for one of another") {
  open_pair(false);
  void* object = nullptr;
  REQUIRE(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
  auto* const window = static_cast<IND2MemoryWindow*>(object);
  REQUIRE(adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 0, 0, 0, &object) == ND_SUCCESS);
  auto* const shared = static_cast<IND2SharedReceiveQueue*>(object);
  auto* const region = make_region();
  IUnknown* const all[] = {adapter, queue, region, window, shared, pair};
  for (auto* const other : all) {
    CHECK((nd2::Adapter::find(other) != nullptr) == (other == adapter));
    CHECK((nd2::CompletionQueue::find(other) != nullptr) == (other == queue));
    CHECK((nd2::MemoryRegion::find(other) != nullptr) == (other == region));
    CHECK((nd2::MemoryWindow::find(other) != nullptr) == (other == window));
    CHECK((nd2::SharedReceiveQueue::find(other) != nullptr) == (other == shared));
    CHECK((nd2::QueuePair::find(other) != nullptr) == (other == pair));
    if (other == shared) continue;
    CHECK(adapter->CreateQueuePairWithSrq(IID_IND2QueuePair, queue, queue, other, nullptr, 1, 1, 0, &object) ==
          ND_INVALID_PARAMETER_4);
  }
  CHECK(pair->Invalidate(nullptr, shared, 0) == ND_INVALID_PARAMETER_2);
  region->Release();
  window->Release();
  shared->Release();
}

TEST_CASE_METHOD(Nd2Fixture, "resources that run out") {
  auto* cq = make_queue();
  std::vector<IND2QueuePair*> pairs;
  void* object = nullptr;
  HRESULT status = ND_SUCCESS;
  while ((status = adapter->CreateQueuePair(IID_IND2QueuePair, cq, cq, nullptr, 1, 1, 1, 1, 0, &object)) ==
         ND_SUCCESS) {
    pairs.push_back(static_cast<IND2QueuePair*>(object));
  }
  CHECK(status == ND_INSUFFICIENT_RESOURCES);
  CHECK(pairs.size() == 254);  // 256 but the indexes of QP0 and QP1
  for (auto* qp : pairs) qp->Release();
  device.dma_allocations_left = 0;
  CHECK(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 8, 0, 0, &object) == ND_NO_MEMORY);
  device.dma_allocations_left = 100;
  device.admin_hangs = true;
  CHECK(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 8, 0, 0, &object) == ND_DEVICE_REMOVED);
  cq->Release();
}

TEST_CASE_METHOD(Nd2Fixture, "32,767 regions of the same memory are registered at the same time, and no more") {
  constexpr std::size_t kRegions = (std::size_t{32} << 10) - 1;  // one key is the host's own agent's
  std::array<std::uint8_t, 64> memory{};
  std::vector<IND2MemoryRegion*> regions;
  HRESULT status = ND_SUCCESS;
  while (status == ND_SUCCESS && regions.size() <= kRegions) {
    regions.push_back(make_region());
    status = regions.back()->Register(memory.data(), memory.size(), 0, &overlapped);
    if (status == ND_PENDING) status = regions.back()->GetOverlappedResult(&overlapped, TRUE);
  }
  CHECK(status == ND_INSUFFICIENT_RESOURCES);
  CHECK(regions.size() == kRegions + 1);
  for (auto* region : regions) region->Release();
  CHECK(device.regions.empty());
}

TEST_CASE("completion statuses") {
  using K = umd::RequestKind;
  using S = hw::CqeStatus;
  const auto status = [](S value, K kind) { return nd2::completion_status(value, kind); };
  for (const K kind : {K::kSend, K::kWrite, K::kRead, K::kReceive}) {
    CHECK(status(S::kSuccess, kind) == ND_SUCCESS);
    CHECK(status(S::kWrFlushErr, kind) == ND_CANCELED);
    CHECK(status(S::kLocProtErr, kind) == ND_ACCESS_VIOLATION);
    CHECK(status(S::kRemAccessErr, kind) == ND_ACCESS_VIOLATION);
    CHECK(status(S::kRetryExcErr, kind) == ND_IO_TIMEOUT);
    CHECK(status(S::kRnrRetryExcErr, kind) == ND_IO_TIMEOUT);
    CHECK(status(S::kRemOpErr, kind) == ND_REMOTE_ERROR);
    CHECK(status(S::kLocQpOpErr, kind) == ND_INVALID_DEVICE_REQUEST);
    CHECK(status(S::kFatalErr, kind) == ND_INTERNAL_ERROR);
    CHECK(status(static_cast<S>(99), kind) == ND_INTERNAL_ERROR);
  }
  CHECK(status(S::kLocProtErr, K::kBind) == ND_ACCESS_VIOLATION);
  CHECK(status(S::kLocProtErr, K::kInvalidate) == ND_INVALID_DEVICE_REQUEST);  // decisions 53
  CHECK(status(S::kLocLenErr, K::kReceive) == ND_BUFFER_OVERFLOW);
  for (const K kind : {K::kSend, K::kRead, K::kWrite}) CHECK(status(S::kLocLenErr, kind) == ND_DATA_OVERRUN);
  for (const K kind : {K::kBind, K::kInvalidate}) {
    CHECK(status(S::kSuccess, kind) == ND_SUCCESS);
    CHECK(status(S::kWrFlushErr, kind) == ND_CANCELED);
    CHECK(status(S::kLocQpOpErr, kind) == ND_INVALID_DEVICE_REQUEST);
    CHECK(status(S::kFatalErr, kind) == ND_INTERNAL_ERROR);
    CHECK(status(static_cast<S>(99), kind) == ND_INTERNAL_ERROR);
  }
  CHECK(status(S::kRemInvReqErr, K::kSend) == ND_DATA_OVERRUN);
  CHECK(status(S::kRemInvReqErr, K::kWrite) == ND_REMOTE_ERROR);
  CHECK(status(S::kRemInvReqErr, K::kRead) == ND_REMOTE_ERROR);
}
