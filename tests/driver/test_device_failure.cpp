#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

#include "driver/kmd/kernel_cq.hpp"
#include "driver/kmd/kernel_fast_mr.hpp"
#include "driver/kmd/kernel_mr.hpp"
#include "driver/kmd/kernel_mw.hpp"
#include "driver/kmd/kernel_srq.hpp"
#include "driver/umd/shared_receive_queue.hpp"
#include "tests/driver/driver_fixture.hpp"
#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::DriverFixture;
using test::FakeDevice;
using test::Nd2Fixture;

// A device that fails or goes: decisions 58, docs/driver.md.

namespace {

struct CountingSink final : EventSink {
  void on_event(const hw::Eqe& eqe) override { types.push_back(static_cast<hw::EqeType>(eqe.event_type)); }
  std::vector<hw::EqeType> types;
};

/// Keeps whoever hands out to it.
struct SlowSink final : EventSink {
  void on_event(const hw::Eqe&) override {
    entered = true;
    while (!go) std::this_thread::yield();
  }
  std::atomic<bool> entered{false};
  std::atomic<bool> go{false};
};

enum class End { kTakenAway, kReadsAllOnes, kReportsFatal, kEvent, kSilent };

/// Lets the device end in one of the ways a device can end, none of which an application takes part in.
void end_device(FakeDevice& device, End how) {
  switch (how) {
    case End::kTakenAway: return device.take_away();
    case End::kReadsAllOnes: device.gone = device.admin_hangs = true; return;
    case End::kReportsFatal:
      device.registers[hw::reg::kDeviceStatus] = hw::RegDeviceStatus{.ready = 1, .fatal = 1}.word();
      device.admin_hangs = true;
      return;
    case End::kEvent:
      device.admin_hangs = true;
      return device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kDeviceFatal)});
    case End::kSilent: device.admin_hangs = true; return;
  }
}

std::uint64_t timeout_of(hw::CompletionTimeoutRange range) {
  FakeDevice device;
  auto kernel = kmd::KernelDevice::open(device, {.completion_timeout = range}).take();
  device.admin_hangs = true;
  const auto start = device.now_ns();
  auto cq = kernel->create_cq({.entries = 16, .uar = 2});
  REQUIRE_FALSE(cq.ok());
  CHECK(cq.error() == Error::kTimeout);
  return device.now_ns() - start;
}

/// Everything an application can have, with a Notify pending on both kinds of queue.
struct FullFixture : Nd2Fixture {
  FullFixture() {
    open_pair(true);
    region = make_region();
    REQUIRE(region->Register(memory.data(), memory.size(), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &overlapped) == ND_PENDING);
    void* object = nullptr;
    REQUIRE(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
    window = static_cast<IND2MemoryWindow*>(object);
    REQUIRE(adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 2, 0, 0, &object) == ND_SUCCESS);
    shared = static_cast<IND2SharedReceiveQueue*>(object);
    for (auto& request : pending) request.hEvent = nd2::create_event(kernel->node());
    REQUIRE(queue->Notify(ND_CQ_NOTIFY_ANY, &pending[0]) == ND_PENDING);
    REQUIRE(shared->Notify(&pending[1]) == ND_PENDING);
  }
  ~FullFixture() {
    for (IUnknown* object :
         {static_cast<IUnknown*>(region), static_cast<IUnknown*>(window), static_cast<IUnknown*>(shared)}) {
      if (object != nullptr) object->Release();
    }
    for (auto& request : pending) nd2::close_handle(request.hEvent);
  }
  void release_all() {
    for (IUnknown* object :
         {static_cast<IUnknown*>(region), static_cast<IUnknown*>(window), static_cast<IUnknown*>(pair),
          static_cast<IUnknown*>(queue), static_cast<IUnknown*>(shared), static_cast<IUnknown*>(adapter)}) {
      object->Release();
    }
    region = nullptr;
    window = nullptr;
    pair = nullptr;
    queue = nullptr;
    shared = nullptr;
    adapter = nullptr;
    core.reset();
  }
  IND2MemoryRegion* region = nullptr;
  IND2MemoryWindow* window = nullptr;
  IND2SharedReceiveQueue* shared = nullptr;
  std::array<OVERLAPPED, 2> pending{};
  std::array<std::uint8_t, 8192> memory{};
};

}  // namespace

TEST_CASE("the admin queue waits longer than the device does for each DMA read of a command") {
  constexpr std::uint64_t kMs = 1'000'000;
  // The end of each range (PCI Express base specification 7.5.3.16), and four reads one after the other.
  const std::pair<hw::CompletionTimeoutRange, std::uint64_t> ranges[] = {
      {hw::CompletionTimeoutRange::kDefault, 50 * kMs}, {hw::CompletionTimeoutRange::kA1, kMs / 10},
      {hw::CompletionTimeoutRange::kA2, 10 * kMs},      {hw::CompletionTimeoutRange::kB1, 55 * kMs},
      {hw::CompletionTimeoutRange::kB2, 210 * kMs},     {hw::CompletionTimeoutRange::kC1, 900 * kMs},
      {hw::CompletionTimeoutRange::kC2, 3500 * kMs}};
  for (const auto& [range, device_ns] : ranges) {
    const std::uint64_t waited = timeout_of(range);
    CHECK(waited > 4 * device_ns);
    CHECK(waited < 5 * device_ns + 20 * kMs);
  }
}

TEST_CASE("commands behind a slow one have their own time") {
  DriverFixture fixture;
  // Each answer comes 100 ms after the one before: late for a deadline that runs from the posting of the third.
  fixture.device.admin_hangs = true;
  std::mutex mutex;
  fixture.device.on_time = [&, next = fixture.device.now_ns() + 100'000'000]() mutable {
    const std::lock_guard lock(mutex);
    if (fixture.device.now_ns() < next) return;
    next += 100'000'000;
    fixture.device.answer_one_command();
  };
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (fixture.kernel->admin().execute(hw::AdminOpcode::kQueryCapabilities, 0, kmd::AdminQueue::Body{})) ++answered;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(answered == 4);
  fixture.device.on_time = {};
  fixture.device.admin_hangs = false;
}

TEST_CASE_METHOD(FullFixture,
                 "whatever ends the device, waits end, requests complete, calls say so, and everything is given back") {
  const End how = GENERATE(End::kTakenAway, End::kReadsAllOnes, End::kReportsFatal, End::kEvent, End::kSilent);
  auto sink = std::make_shared<CountingSink>();
  kernel->events().subscribe_device(sink);
  end_device(device, how);
  // A device that is silent but says that it is well is found out by the next command alone.
  if (how == End::kSilent) REQUIRE(queue->Resize(100) == ND_DEVICE_REMOVED);
  for (auto& request : pending) {
    CHECK(queue->GetOverlappedResult(&request, TRUE) == ND_INTERNAL_ERROR);
  }
  CHECK(sink->types == std::vector{hw::EqeType::kDeviceFatal});
  CHECK(core->failed());

  void* object = nullptr;
  USHORT group = 0;
  KAFFINITY affinity = 0;
  OVERLAPPED late{};
  late.hEvent = event;
  CHECK(queue->Notify(ND_CQ_NOTIFY_ANY, &late) == ND_DEVICE_REMOVED);
  CHECK(late.Internal == 0);
  CHECK(queue->Resize(100) == ND_DEVICE_REMOVED);
  CHECK(queue->GetNotifyAffinity(&group, &affinity) == ND_DEVICE_REMOVED);
  CHECK(shared->Notify(&late) == ND_DEVICE_REMOVED);
  CHECK(shared->Modify(16, 0) == ND_DEVICE_REMOVED);
  CHECK(shared->GetNotifyAffinity(&group, &affinity) == ND_DEVICE_REMOVED);
  CHECK(shared->Receive(nullptr, nullptr, 0) == ND_DEVICE_REMOVED);
  CHECK(pair->Receive(nullptr, nullptr, 0) == ND_DEVICE_REMOVED);
  CHECK(pair->Send(nullptr, nullptr, 0, 0) == ND_DEVICE_REMOVED);
  CHECK(pair->Write(nullptr, nullptr, 0, 0, 0, 0) == ND_DEVICE_REMOVED);
  CHECK(pair->Read(nullptr, nullptr, 0, 0, 0, 0) == ND_DEVICE_REMOVED);
  CHECK(pair->Bind(nullptr, region, window, memory.data(), 1, 0) == ND_DEVICE_REMOVED);
  CHECK(pair->Invalidate(nullptr, window, 0) == ND_DEVICE_REMOVED);
  CHECK(pair->Flush() == ND_DEVICE_REMOVED);
  CHECK(adapter->CreateOverlappedFile(&object) == ND_DEVICE_REMOVED);
  CHECK(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 8, 0, 0, &object) == ND_DEVICE_REMOVED);
  CHECK(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, &object) == ND_DEVICE_REMOVED);
  CHECK(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_DEVICE_REMOVED);
  CHECK(adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 2, 0, 0, &object) ==
        ND_DEVICE_REMOVED);
  CHECK(adapter->CreateQueuePair(IID_IND2QueuePair, queue, queue, nullptr, 1, 1, 1, 1, 0, &object) ==
        ND_DEVICE_REMOVED);
  CHECK(adapter->CreateQueuePairWithSrq(IID_IND2QueuePair, queue, queue, shared, nullptr, 1, 1, 0, &object) ==
        ND_DEVICE_REMOVED);
  ND2_RESULT result{};
  CHECK(queue->GetResults(&result, 1) == 0);
  CHECK(queue->CancelOverlappedRequests() == ND_SUCCESS);

  CHECK(region->Deregister(&late) == ND_PENDING);
  CHECK(late.Internal == ND_SUCCESS);
  CHECK(region->Register(memory.data(), 1, 0, &late) == ND_DEVICE_REMOVED);
  CHECK(device.mapped_pages == 0);
  release_all();
  // The device was reset before its memory was given back, and nothing is left but what the kernel itself has.
  CHECK(device.resets == 1);
  kernel.reset();
  CHECK(device.resets == 1);
  CHECK(device.live_allocations() == 0);
}

TEST_CASE_METHOD(FullFixture,
                 "a device that failed is brought up again; what was made before stays invalid, and does no harm") {
  end_device(device, End::kReportsFatal);
  REQUIRE(queue->Resize(100) == ND_DEVICE_REMOVED);
  CHECK(queue->GetOverlappedResult(&pending[0], FALSE) == ND_INTERNAL_ERROR);
  const bool released_first = GENERATE(true, false);
  if (released_first) release_all();

  void* object = nullptr;
  REQUIRE(nd2::open_adapter(kernel->node(), addresses, IID_IND2Adapter, &object) == ND_SUCCESS);
  auto* const second = static_cast<IND2Adapter*>(object);
  CHECK(device.resets == 1);
  CHECK(device.registers[hw::reg::kDeviceControl] == 1);
  CHECK(device.registers[hw::reg::kPortMac] == 0x0200'0000'0001);
  REQUIRE(second->CreateCompletionQueue(IID_IND2CompletionQueue, file, 16, 0, 0, &object) == ND_SUCCESS);
  auto* const cq = static_cast<IND2CompletionQueue*>(object);
  REQUIRE(second->CreateQueuePair(IID_IND2QueuePair, cq, cq, nullptr, 4, 4, 1, 1, 0, &object) == ND_SUCCESS);
  auto* const qp = static_cast<IND2QueuePair*>(object);
  const auto fresh = nd2::QueuePair::find(qp)->core();
  if (!released_first) {
    CHECK(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_DEVICE_REMOVED);
    CHECK(pair->Receive(nullptr, nullptr, 0) == ND_DEVICE_REMOVED);
    CHECK(queue->Notify(ND_CQ_NOTIFY_ANY, &pending[0]) == ND_DEVICE_REMOVED);
    CHECK(adapter->CreateQueuePair(IID_IND2QueuePair, cq, cq, nullptr, 1, 1, 1, 1, 0, &object) ==
          ND_INVALID_PARAMETER_2);
    device.commands.clear();
    release_all();
    CHECK(device.commands.empty());  // the device knows none of it
  }
  CHECK(device.mapped_pages == 0);
  REQUIRE(fresh->connect({}).ok());
  OVERLAPPED again{};
  again.hEvent = event;
  REQUIRE(cq->Notify(ND_CQ_NOTIFY_ANY, &again) == ND_PENDING);
  REQUIRE(qp->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  device.finish_receive(fresh->qpn(), 5);
  device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion),
                       .number = nd2::CompletionQueue::find(cq)->core()->cqn()});
  CHECK(cq->GetOverlappedResult(&again, TRUE) == ND_SUCCESS);
  ND2_RESULT result{};
  REQUIRE(cq->GetResults(&result, 1) == 1);
  CHECK(result.BytesTransferred == 5);
  qp->Release();
  cq->Release();
  second->Release();
}

TEST_CASE("one command without an answer costs a reset, not the device") {
  DriverFixture fixture;
  for (int i = 0; i < 3; ++i) {
    fixture.device.admin_hangs = true;
    CHECK(fixture.kernel->create_cq({.entries = 16, .uar = 2}).error() == Error::kTimeout);
    CHECK(fixture.kernel->create_cq({.entries = 16, .uar = 2}).error() == Error::kDeviceFailed);
    REQUIRE(fixture.kernel->recover().ok());
    REQUIRE(fixture.kernel->recover().ok());
    CHECK(fixture.kernel->create_cq({.entries = 16, .uar = 2}).ok());
  }
  CHECK(fixture.device.resets == 3);
  // What the process had is of a life that is over.
  CHECK(umd::CompletionQueue::create(fixture.process, 8).error() == Error::kDeviceFailed);
  auto process = umd::ProcessContext::open(fixture.kernel->node()).take();
  CHECK(umd::CompletionQueue::create(process, 8).ok());
}

TEST_CASE("a region that the device does not give up while there is a driver goes with the driver's reset") {
  static std::array<std::uint8_t, 4096> memory;
  DriverFixture fixture;
  auto region = fixture.kernel->create_mr({.address = memory.data(), .length = 4096, .pd = 1}).take();
  fixture.device.next_status = {hw::AdminStatus::kInUse, hw::AdminStatus::kInUse};
  kmd::KernelMr::dispose(std::move(region));
  auto sink = std::make_shared<CountingSink>();
  fixture.kernel->events().subscribe_device(sink);
  fixture.process.reset();
  REQUIRE(fixture.device.mapped_pages != 0);
  fixture.kernel.reset();
  CHECK(sink->types == std::vector{hw::EqeType::kDeviceFatal});
  CHECK(fixture.device.next_status.empty());
  CHECK(fixture.device.resets == 1);
  CHECK(fixture.device.mapped_pages == 0);
}

TEST_CASE("a device that does not come back after its reset can be tried again") {
  DriverFixture fixture;
  fixture.device.admin_hangs = true;
  CHECK_FALSE(fixture.kernel->create_cq({.entries = 16, .uar = 2}).ok());
  fixture.device.dma_allocations_left = GENERATE(0U, 1U, 2U);
  CHECK(fixture.kernel->recover().error() == Error::kOutOfMemory);
  fixture.device.dma_allocations_left = 100;
  CHECK(fixture.kernel->recover().ok());
  CHECK(fixture.kernel->create_cq({.entries = 16, .uar = 2}).ok());
  fixture.device.take_away();
  CHECK(fixture.kernel->recover().error() == Error::kDeviceFailed);
}

TEST_CASE_METHOD(Nd2Fixture, "real threads that wait are woken when the device goes") {
  queue = make_queue();
  device.threads = true;
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  OVERLAPPED pending{};
  pending.hEvent = nd2::create_event(kernel->node());
  REQUIRE(queue->Notify(ND_CQ_NOTIFY_ANY, &pending) == ND_PENDING);
  auto unrelated = std::make_shared<nd2::Event>(nd2::waiter_of(kernel->node()), true);
  auto port = std::make_shared<nd2::CompletionPort>(nd2::waiter_of(kernel->node()));
  threads.emplace_back([&] { ended += queue->GetOverlappedResult(&pending, TRUE) == ND_INTERNAL_ERROR; });
  threads.emplace_back([&] { ended += !unrelated->wait(); });
  threads.emplace_back([&] { ended += !port->take().has_value(); });
  threads.emplace_back([&] { ended += !umd::wait_until(kernel->node(), [] { return false; }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(ended == 0);
  const auto start = std::chrono::steady_clock::now();
  device.take_away();
  for (auto& thread : threads) thread.join();
  CHECK(ended == 4);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  nd2::close_handle(pending.hEvent);
}

TEST_CASE_METHOD(Nd2Fixture, "a failure that another thread is still handing out ends a wait as it is handed out") {
  queue = make_queue();
  device.threads = true;
  const auto slow = std::make_shared<SlowSink>();
  // Before the completion queue: queue pairs are told first.
  nd2::CompletionQueue::find(queue)->process()->events().subscribe(EventTable::Of::kQp, 0, slow);
  OVERLAPPED pending{};
  pending.hEvent = nd2::create_event(kernel->node());
  REQUIRE(queue->Notify(ND_CQ_NOTIFY_ANY, &pending) == ND_PENDING);
  std::thread handing_out([&] { umd::wait_until(kernel->node(), [] { return false; }); });
  device.take_away();
  while (!slow->entered) std::this_thread::yield();
  std::atomic<bool> ended{false};
  HRESULT result = ND_SUCCESS;
  std::thread waiting([&] {
    result = queue->GetOverlappedResult(&pending, TRUE);
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(ended);
  slow->go = true;
  handing_out.join();
  waiting.join();
  CHECK(result == ND_INTERNAL_ERROR);
  nd2::close_handle(pending.hEvent);
}
