#pragma once

#include <netinet/in.h>

#include "driver/kmd/kernel_device.hpp"
#include "driver/nd2/adapter.hpp"
#include "driver/nd2/completion_queue.hpp"
#include "driver/nd2/handles.hpp"
#include "driver/nd2/queue_pair.hpp"
#include "driver/umd/waiting.hpp"
#include "tests/driver/fake_device.hpp"

namespace rnic::test {

/// An adapter on a fake device, as an application sees it.
struct Nd2Fixture {
  Nd2Fixture() {
    kernel = kmd::KernelDevice::open(device, {.mac = 0x0200'0000'0001, .event_queues = 1}).take();
    sockaddr_storage address{};
    reinterpret_cast<sockaddr_in&>(address).sin_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(0x0A000001);
    addresses.push_back(address);
    void* object = nullptr;
    nd2::open_adapter(kernel->node(), addresses, IID_IND2Adapter, &object);
    adapter = static_cast<IND2Adapter*>(object);
    adapter->CreateOverlappedFile(&file);
    event = nd2::create_event(kernel->node());
    overlapped.hEvent = event;
  }
  ~Nd2Fixture() {
    if (pair != nullptr) pair->Release();
    if (queue != nullptr) queue->Release();
    if (adapter != nullptr) adapter->Release();
    nd2::close_handle(event);
    nd2::close_handle(file);
  }

  IND2CompletionQueue* make_queue(ULONG depth = 64) {
    void* object = nullptr;
    adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, depth, 0, 0, &object);
    return static_cast<IND2CompletionQueue*>(object);
  }
  IND2MemoryRegion* make_region() {
    void* object = nullptr;
    adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, &object);
    return static_cast<IND2MemoryRegion*>(object);
  }
  IND2QueuePair* make_pair(IND2CompletionQueue* cq, ULONG depth = 8, ULONG sges = 4, ULONG inline_bytes = 64) {
    void* object = nullptr;
    adapter->CreateQueuePair(IID_IND2QueuePair, cq, cq, this, depth, depth, sges, sges, inline_bytes, &object);
    return static_cast<IND2QueuePair*>(object);
  }
  void open_pair(bool connected) {
    queue = make_queue();
    pair = make_pair(queue);
    core = nd2::QueuePair::find(pair)->core();
    if (connected) static_cast<void>(core->connect({}).ok());
  }
  bool event_is_set() { return nd2::find_handle_as<nd2::Event>(event)->try_take(); }
  HRESULT status() const { return static_cast<HRESULT>(overlapped.Internal); }
  std::uint32_t cqn() const { return device.completion_queues.begin()->first; }
  /// What the device does when an armed queue gets an entry.
  void completion_event() {
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion), .number = cqn()});
  }

  FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  std::vector<sockaddr_storage> addresses;
  IND2Adapter* adapter = nullptr;
  IND2CompletionQueue* queue = nullptr;
  IND2QueuePair* pair = nullptr;
  std::shared_ptr<umd::QueuePair> core;
  HANDLE file = nullptr;
  HANDLE event = nullptr;
  OVERLAPPED overlapped{};
};

}  // namespace rnic::test
