// A program of NetworkDirect as it is written for Windows: `nd2_program server ADDRESS` waits for one connection and a
// message and answers it, `nd2_program client ADDRESS` makes them, `nd2_program info` says what it finds, `nd2_program
// large ADDRESS` takes as much as adapters should have at least, `nd2_program polls ADDRESS` waits in loops that only
// ask. It knows the published interfaces and nothing of this project.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "program_parts.hpp"

using namespace program_parts;

namespace {

constexpr USHORT kPort = 54321;

int info() {
  SIZE_T bytes = 0;
  HRESULT status = NdQueryAddressList(0, nullptr, &bytes);
  if (status == ND_SUCCESS) {
    std::printf("no addresses\n");
    return 3;
  }
  std::string room(bytes, '\0');
  auto* const list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(room.data());
  require(NdQueryAddressList(0, list, &bytes), "NdQueryAddressList");
  for (INT i = 0; i < list->iAddressCount; ++i) {
    char text[INET6_ADDRSTRLEN] = "";
    const sockaddr* const one = list->Address[i].lpSockaddr;
    const void* const from = one->sa_family == AF_INET
                                 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(one)->sin_addr)
                                 : &reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr;
    std::printf("address %s\n", inet_ntop(one->sa_family, from, text, sizeof text));
  }
  IND2Adapter* adapter = nullptr;
  require(NdOpenAdapter(IID_IND2Adapter, list->Address[0].lpSockaddr,
                        static_cast<SIZE_T>(list->Address[0].iSockaddrLength), reinterpret_cast<void**>(&adapter)),
          "NdOpenAdapter");
  ND2_ADAPTER_INFO limits{};
  limits.InfoVersion = ND_VERSION_2;
  ULONG size = sizeof limits;
  require(adapter->Query(&limits, &size), "Query");
  std::printf("caller %u callee %u sge %u inline %u reads %u %u depth %u %u cq %u region %zu transfer %u flags %#x\n",
              limits.MaxCallerData, limits.MaxCalleeData, limits.MaxInitiatorSge, limits.MaxInlineDataSize,
              limits.MaxInboundReadLimit, limits.MaxOutboundReadLimit, limits.MaxReceiveQueueDepth,
              limits.MaxInitiatorQueueDepth, limits.MaxCompletionQueueDepth, limits.MaxRegistrationSize,
              limits.MaxTransferLength, limits.AdapterFlags);
  std::printf("left %u\n", adapter->Release());
  return 0;
}

/// What both ends have.
struct End {
  explicit End(const sockaddr_in& own) {
    require(NdOpenAdapter(IID_IND2Adapter, generic(own), sizeof own, reinterpret_cast<void**>(&adapter)),
            "NdOpenAdapter");
    require(adapter->CreateOverlappedFile(&file), "CreateOverlappedFile");
    port = CreateIoCompletionPort(file, nullptr, 0, 0);
    // The event alone, not the port.
    event = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    request.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(event) | 1);
    require(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 8, 0, 0, reinterpret_cast<void**>(&cq)),
            "CreateCompletionQueue");
    require(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, reinterpret_cast<void**>(&region)),
            "CreateMemoryRegion");
    finish(region, region->Register(memory, sizeof memory, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &request), "Register");
    require(
        adapter->CreateQueuePair(IID_IND2QueuePair, cq, cq, nullptr, 4, 4, 1, 1, 0, reinterpret_cast<void**>(&pair)),
        "CreateQueuePair");
    require(adapter->CreateConnector(IID_IND2Connector, file, reinterpret_cast<void**>(&connector)), "CreateConnector");
    ND2_SGE sge{memory, sizeof memory, region->GetLocalToken()};
    require(pair->Receive(nullptr, &sge, 1), "Receive");
  }

  void finish(IND2Overlapped* object, HRESULT status, const char* what) {
    if (status == ND_PENDING) {
      if (WaitForSingleObject(event, INFINITE) != WAIT_OBJECT_0) require(E_FAIL, "WaitForSingleObject");
      status = object->GetOverlappedResult(&request, FALSE);
    }
    require(status, what);
  }

  void send(const char* text) {
    std::strcpy(out, text);
    ND2_SGE sge{out, sizeof out, 0};
    finish(out_region, out_region->Register(out, sizeof out, 0, &request), "Register");
    sge.MemoryRegionToken = out_region->GetLocalToken();
    require(pair->Send(out, &sge, 1, 0), "Send");
  }

  /// The next one, by the completion port.
  ND2_RESULT result() {
    ND2_RESULT got{};
    while (cq->GetResults(&got, 1) == 0) {
      OVERLAPPED arrival{};
      if (cq->Notify(ND_CQ_NOTIFY_ANY, &arrival) != ND_PENDING) continue;
      DWORD bytes = 0;
      ULONG_PTR key = 0;
      OVERLAPPED* arrived = nullptr;
      if (!GetQueuedCompletionStatus(port, &bytes, &key, &arrived, INFINITE) || arrived != &arrival)
        require(E_FAIL, "GetQueuedCompletionStatus");
      require(cq->GetOverlappedResult(&arrival, FALSE), "Notify");
    }
    return got;
  }

  ~End() {
    for (IUnknown* object :
         {static_cast<IUnknown*>(connector), static_cast<IUnknown*>(pair), static_cast<IUnknown*>(cq),
          static_cast<IUnknown*>(region), static_cast<IUnknown*>(out_region), static_cast<IUnknown*>(adapter)}) {
      if (object->Release() != 0) std::printf("an object stays\n");
    }
    CloseHandle(file);
    CloseHandle(port);
    CloseHandle(event);
  }

  IND2Adapter* adapter = nullptr;
  HANDLE file = nullptr, port = nullptr, event = nullptr;
  OVERLAPPED request{};
  IND2CompletionQueue* cq = nullptr;
  IND2MemoryRegion* region = nullptr;
  IND2MemoryRegion* out_region = nullptr;
  IND2QueuePair* pair = nullptr;
  IND2Connector* connector = nullptr;
  char memory[64] = "";
  char out[64] = "";
};

void exchange(End& end, bool first) {
  if (first) end.send("hello");
  for (int done = 0; done < 2; ++done) {
    const ND2_RESULT got = end.result();
    require(got.Status, "a request");
    if (got.RequestType != Nd2RequestTypeReceive) continue;
    std::printf("got %s, %u bytes\n", end.memory, got.BytesTransferred);
    if (!first) end.send("hello yourself");
  }
}

int serve(const char* address) {
  const sockaddr_in own = address_of(address, kPort);
  End end(own);
  require(end.adapter->CreateMemoryRegion(IID_IND2MemoryRegion, end.file, reinterpret_cast<void**>(&end.out_region)),
          "CreateMemoryRegion");
  IND2Listener* listener = nullptr;
  require(end.adapter->CreateListener(IID_IND2Listener, end.file, reinterpret_cast<void**>(&listener)),
          "CreateListener");
  require(listener->Bind(generic(own), sizeof own), "Bind");
  require(listener->Listen(0), "Listen");
  end.finish(listener, listener->GetConnectionRequest(end.connector, &end.request), "GetConnectionRequest");
  end.finish(end.connector, end.connector->Accept(end.pair, 0, 0, nullptr, 0, &end.request), "Accept");
  exchange(end, false);
  end.finish(end.connector, end.connector->NotifyDisconnect(&end.request), "NotifyDisconnect");
  end.finish(end.connector, end.connector->Disconnect(&end.request), "Disconnect");
  if (listener->Release() != 0) std::printf("the listener stays\n");
  std::printf("the peer has gone\n");
  return 0;
}

int ask(const char* address) {
  const sockaddr_in peer = address_of(address, kPort);
  const sockaddr_in own = own_address_for(peer);
  require(NdCheckAddress(generic(own), sizeof own), "NdCheckAddress");
  End end(own);
  require(end.adapter->CreateMemoryRegion(IID_IND2MemoryRegion, end.file, reinterpret_cast<void**>(&end.out_region)),
          "CreateMemoryRegion");
  require(end.connector->Bind(generic(own), sizeof own), "Bind");
  end.finish(end.connector,
             end.connector->Connect(end.pair, generic(peer), sizeof peer, 0, 0, nullptr, 0, &end.request), "Connect");
  end.finish(end.connector, end.connector->CompleteConnect(&end.request), "CompleteConnect");
  exchange(end, true);
  end.finish(end.connector, end.connector->Disconnect(&end.request), "Disconnect");
  return 0;
}

/// An adapter and a region, with memory for it.
struct Registering {
  Registering(const char* address, SIZE_T size) : bytes(size) {
    const sockaddr_in own = address_of(address, 0);
    require(NdOpenAdapter(IID_IND2Adapter, generic(own), sizeof own, reinterpret_cast<void**>(&adapter)),
            "NdOpenAdapter");
    require(adapter->CreateOverlappedFile(&file), "CreateOverlappedFile");
    request.hEvent = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    memory = VirtualAlloc(nullptr, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    if (memory == nullptr) require(E_FAIL, "VirtualAlloc");
    require(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, reinterpret_cast<void**>(&region)),
            "CreateMemoryRegion");
  }
  Registering(const Registering&) = delete;
  Registering& operator=(const Registering&) = delete;
  ~Registering() {
    region->Release();
    VirtualFree(memory, 0, MEM_RELEASE);
    CloseHandle(request.hEvent);
    CloseHandle(file);
    std::printf("left %u\n", adapter->Release());
  }

  const SIZE_T bytes;
  IND2Adapter* adapter = nullptr;
  HANDLE file = nullptr;
  OVERLAPPED request{};
  void* memory = nullptr;
  IND2MemoryRegion* region = nullptr;
};

/// A region of 2 GiB.
int take_much(const char* address) {
  Registering one(address, SIZE_T{2} << 30);
  const auto finish = [&](HRESULT status, const char* what) {
    require(status == ND_PENDING ? one.region->GetOverlappedResult(&one.request, TRUE) : status, what);
  };
  finish(one.region->Register(one.memory, one.bytes, 0, &one.request), "Register");
  std::printf("registered %zu bytes\n", one.bytes);
  finish(one.region->Deregister(&one.request), "Deregister");
  return 0;
}

/// Registers and deregisters, and asks with `completed` for the end of both.
template <typename Completed>
void poll_in(Registering& one, const char* how, Completed&& completed) {
  bool pended = false;
  const auto finish = [&](HRESULT status, const char* what) {
    if (status == ND_PENDING) {
      pended = true;
      while (!completed()) continue;
      status = one.region->GetOverlappedResult(&one.request, FALSE);
    }
    require(status, what);
  };
  finish(one.region->Register(one.memory, one.bytes, 0, &one.request), "Register");
  finish(one.region->Deregister(&one.request), "Deregister");
  std::printf("%s: %s\n", how, pended ? "done" : "nothing has pended");
}

/// A thread that asks and never waits comes to an end in each of these loops.
int poll_in_all_ways(const char* address) {
  constexpr unsigned kPatience = 100;  // seconds
  alarm(kPatience);
  Registering one(address, SIZE_T{32} << 20);
  OVERLAPPED& request = one.request;
  const HANDLE port = CreateIoCompletionPort(one.file, nullptr, 0, 0);
  const auto arrived = [&] {
    DWORD bytes = 0;
    ULONG_PTR key = 0;
    OVERLAPPED* which = nullptr;
    return GetQueuedCompletionStatus(port, &bytes, &key, &which, 0) != FALSE && which == &request;
  };
  poll_in(one, "GetQueuedCompletionStatus", arrived);
  // The event alone from here on.
  const HANDLE event = request.hEvent;
  request.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(event) | 1);
  poll_in(one, "HasOverlappedIoCompleted", [&] { return HasOverlappedIoCompleted(&request); });
  const auto is_final = [&] {
    return static_cast<HRESULT>(*static_cast<volatile ULONG_PTR*>(&request.Internal)) != ND_PENDING;
  };
  poll_in(one, "YieldProcessor", [&] {
    YieldProcessor();
    return is_final();
  });
  poll_in(one, "SwitchToThread", [&] {
    SwitchToThread();
    return is_final();
  });
  poll_in(one, "Sleep", [&] {
    Sleep(0);
    return is_final();
  });
  ResetEvent(event);
  poll_in(one, "WaitForSingleObject", [&] { return WaitForSingleObject(event, 0) == WAIT_OBJECT_0; });
  poll_in(one, "WaitForMultipleObjects", [&] { return WaitForMultipleObjects(1, &event, TRUE, 0) == WAIT_OBJECT_0; });
  poll_in(one, "GetOverlappedResult", [&] {
    DWORD bytes = 0;
    return GetOverlappedResult(one.file, &request, &bytes, FALSE) != FALSE;
  });
  request.hEvent = event;
  CloseHandle(port);
  return 0;
}

int run(int count, char* arguments[]) {
  const std::string role = count > 1 ? arguments[1] : "";
  if (role == "info") return info();
  if (role == "server" && count == 3) return serve(arguments[2]);
  if (role == "client" && count == 3) return ask(arguments[2]);
  if (role == "large" && count == 3) return take_much(arguments[2]);
  if (role == "polls" && count == 3) return poll_in_all_ways(arguments[2]);
  return 2;
}

}  // namespace

int main(int count, char* arguments[]) {
  const HRESULT before = DllCanUnloadNow();
  require(NdStartup(), "NdStartup");
  const int code = run(count, arguments);
  require(NdCleanup(), "NdCleanup");
  if (before == S_OK && DllCanUnloadNow() != S_OK) std::printf("something stays\n");
  return code;
}
