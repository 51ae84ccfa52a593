// A program of NetworkDirect that wants much of one adapter: `nd2_stress threads ADDRESS ROUNDS` has eight threads that
// each connect to this host, exchange a message and part; `nd2_stress queue ADDRESS COUNT` has eight threads take the
// results of one completion queue; `nd2_stress regions ADDRESS COUNT` has so many regions at a time;
// `nd2_stress unmapped ADDRESS 0` unmaps a buffer that is registered. It knows the published interfaces and nothing of
// this project.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "program_parts.hpp"

using namespace program_parts;

namespace {

constexpr unsigned kThreads = 8;
constexpr USHORT kPort = 20000;

/// A request with its event; calls wait for its end.
struct Request {
  Request() { block.hEvent = CreateEvent(nullptr, FALSE, FALSE, nullptr); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { CloseHandle(block.hEvent); }
  void finish(IND2Overlapped* object, HRESULT status, const char* what) {
    require(status == ND_PENDING ? object->GetOverlappedResult(&block, TRUE) : status, what);
  }
  OVERLAPPED block{};
};

struct Memory {
  Memory(IND2Adapter* adapter, HANDLE file) {
    require(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, region.put()), "CreateMemoryRegion");
    Request request;
    request.finish(region.get(), region->Register(bytes, sizeof bytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &request.block),
                   "Register");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    Request request;
    request.finish(region.get(), region->Deregister(&request.block), "Deregister");
  }
  ND2_SGE sge(std::size_t offset) { return {bytes + offset, 64, region->GetLocalToken()}; }
  char bytes[128] = "";
  Owned<IND2MemoryRegion> region;
};

/// Both ends of a connection of this host to itself.
struct Both {
  Both(IND2Adapter* adapter, HANDLE file, IND2CompletionQueue* queue, const sockaddr_in& own, USHORT port) {
    for (auto* pair : {&from, &to}) {
      require(adapter->CreateQueuePair(IID_IND2QueuePair, queue, queue, this, 16, 16, 1, 1, 0, pair->put()),
              "CreateQueuePair");
    }
    for (auto* connector : {&a, &b})
      require(adapter->CreateConnector(IID_IND2Connector, file, connector->put()), "CreateConnector");
    Owned<IND2Listener> listener;
    require(adapter->CreateListener(IID_IND2Listener, file, listener.put()), "CreateListener");
    sockaddr_in at = own;
    at.sin_port = htons(port);
    require(listener->Bind(generic(at), sizeof at), "Bind of the listener");
    require(listener->Listen(0), "Listen");
    require(a->Bind(generic(own), sizeof own), "Bind");
    Request incoming, asked, accepted, completed;
    const HRESULT waits = listener->GetConnectionRequest(b.get(), &incoming.block);
    const HRESULT asks = a->Connect(from.get(), generic(at), sizeof at, 1, 1, nullptr, 0, &asked.block);
    incoming.finish(listener.get(), waits, "GetConnectionRequest");
    const HRESULT accepts = b->Accept(to.get(), 1, 1, nullptr, 0, &accepted.block);
    asked.finish(a.get(), asks, "Connect");
    completed.finish(a.get(), a->CompleteConnect(&completed.block), "CompleteConnect");
    accepted.finish(b.get(), accepts, "Accept");
  }
  void part() {
    Request told, ended;
    const HRESULT notify = b->NotifyDisconnect(&told.block);
    ended.finish(a.get(), a->Disconnect(&ended.block), "Disconnect");
    told.finish(b.get(), notify, "NotifyDisconnect");
  }
  Owned<IND2QueuePair> from, to;
  Owned<IND2Connector> a, b;
};

void each_with_its_objects(IND2Adapter* adapter, const sockaddr_in& own, unsigned rounds) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([=] {
      const File file(adapter);
      for (unsigned round = 0; round < rounds; ++round) {
        Owned<IND2CompletionQueue> queue;
        require(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file.handle, 32, 0, 0, queue.put()),
                "CreateCompletionQueue");
        Memory memory(adapter, file.handle);
        Both both(adapter, file.handle, queue.get(), own, static_cast<USHORT>(kPort + i));
        const ND2_SGE in = memory.sge(64), out = memory.sge(0);
        std::snprintf(memory.bytes, 64, "thread %u, round %u", i, round);
        require(both.to->Receive(nullptr, &in, 1), "Receive");
        require(both.from->Send(nullptr, &out, 1, 0), "Send");
        for (ULONG got = 0; got < 2;) {
          ND2_RESULT result{};
          if (queue->GetResults(&result, 1) == 0) {
            Request arrival;
            arrival.finish(queue.get(), queue->Notify(ND_CQ_NOTIFY_ANY, &arrival.block), "Notify");
            continue;
          }
          require(result.Status, "a request");
          ++got;
        }
        if (std::string(memory.bytes) != memory.bytes + 64) require(E_FAIL, "the message");
        both.part();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%u connections\n", kThreads * rounds);
}

/// Each sends its messages; whoever polls gets anybody's results.
void all_on_one_queue(IND2Adapter* adapter, const sockaddr_in& own, unsigned count) {
  const File file(adapter);
  Owned<IND2CompletionQueue> queue;
  require(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file.handle, 1024, 0, 0, queue.put()),
          "CreateCompletionQueue");
  std::atomic<unsigned> taken{};
  const unsigned all = 2 * kThreads * count;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Memory memory(adapter, file.handle);
      Both both(adapter, file.handle, queue.get(), own, static_cast<USHORT>(kPort + i));
      const ND2_SGE in = memory.sge(64), out = memory.sge(0);
      for (unsigned posted = 0; taken < all;) {
        if (posted < count && both.to->Receive(nullptr, &in, 1) == ND_SUCCESS) {
          while (both.from->Send(nullptr, &out, 1, 0) != ND_SUCCESS) SwitchToThread();
          ++posted;
        }
        ND2_RESULT results[4];
        const ULONG got = queue->GetResults(results, 4);
        for (ULONG k = 0; k < got; ++k) require(results[k].Status, "a request");
        taken += got;
        if (got == 0) SwitchToThread();
      }
      both.part();
    });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%u results\n", taken.load());
}

/// All of the same page, so that their number alone is looked at.
void many_regions(IND2Adapter* adapter, unsigned count) {
  const File file(adapter);
  alignas(4096) static char page[64];
  std::vector<Owned<IND2MemoryRegion>> regions(count);
  Request request;
  unsigned made = 0;
  HRESULT status = ND_SUCCESS;
  for (; made < count; ++made) {
    auto& region = regions[made];
    require(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file.handle, region.put()), "CreateMemoryRegion");
    status = region->Register(page, sizeof page, 0, &request.block);
    if (status == ND_PENDING) status = region->GetOverlappedResult(&request.block, TRUE);
    if (status != ND_SUCCESS) break;
  }
  std::printf("%u regions, then %#010x\n", made, static_cast<unsigned>(status));
  for (unsigned i = 0; i < made; ++i)
    request.finish(regions[i].get(), regions[i]->Deregister(&request.block), "Deregister");
}

/// The program unmaps a buffer that is registered: a request that needs it fails, and Deregister takes the region back.
void unmap_a_buffer(IND2Adapter* adapter, const sockaddr_in& own) {
  constexpr SIZE_T kBytes = 4096;
  const File file(adapter);
  Owned<IND2CompletionQueue> queue;
  require(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file.handle, 32, 0, 0, queue.put()),
          "CreateCompletionQueue");
  void* const buffer = VirtualAlloc(nullptr, kBytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
  Owned<IND2MemoryRegion> region;
  require(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file.handle, region.put()), "CreateMemoryRegion");
  Request request;
  request.finish(region.get(), region->Register(buffer, kBytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &request.block),
                 "Register");
  Both both(adapter, file.handle, queue.get(), own, kPort);
  VirtualFree(buffer, 0, MEM_RELEASE);
  const ND2_SGE out{buffer, 64, region->GetLocalToken()};
  require(both.from->Send(nullptr, &out, 1, 0), "Send");
  ND2_RESULT result{};
  while (queue->GetResults(&result, 1) == 0) SwitchToThread();
  std::printf("a Send of it: %#010x\n", static_cast<unsigned>(result.Status));
  request.finish(region.get(), region->Deregister(&request.block), "Deregister");
}

}  // namespace

int main(int count, char* arguments[]) {
  if (count != 4) return 2;
  const std::string role = arguments[1];
  const sockaddr_in own = address_of(arguments[2], 0);
  const auto number = static_cast<unsigned>(std::strtoul(arguments[3], nullptr, 10));
  require(NdStartup(), "NdStartup");
  {
    Owned<IND2Adapter> adapter;
    require(NdOpenAdapter(IID_IND2Adapter, generic(own), sizeof own, adapter.put()), "NdOpenAdapter");
    if (role == "threads") each_with_its_objects(adapter.get(), own, number);
    if (role == "queue") all_on_one_queue(adapter.get(), own, number);
    if (role == "regions") many_regions(adapter.get(), number);
    if (role == "unmapped") unmap_a_buffer(adapter.get(), own);
  }
  require(NdCleanup(), "NdCleanup");
  if (DllCanUnloadNow() != S_OK) std::printf("something stays\n");
  return 0;
}
