#include <catch2/catch.hpp>

#include "driver/kmd/kernel_fast_mr.hpp"
#include "driver/kmd/kernel_mr.hpp"
#include "driver/kmd/kernel_mw.hpp"
#include "driver/nd2/memory_region.hpp"
#include "driver/nd2/memory_window.hpp"
#include "driver/nd2/shared_receive_queue.hpp"
#include "driver/umd/memory_request.hpp"
#include "tests/driver/failing_memory.hpp"
#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::fail_each;
using test::fail_each_call;
using test::FakeDevice;

// Every allocation of the driver fails once, in every create, post and poll: nothing is lost, nothing is left behind,
// and the objects work afterwards.

namespace {

/// A device with hardly more than one object of each kind, so that one that is lost is missed.
struct MemoryFixture {
  explicit MemoryFixture(std::uint32_t event_queues = 1) {
    device.capabilities.log_max_cq = 1;
    device.capabilities.log_max_qp = 2;
    device.capabilities.log_max_mr = 3;
    device.capabilities.log_max_srq = 0;
    device.capabilities.uar_count = 2;
    kernel = kmd::KernelDevice::open(device, {.mac = 2, .event_queues = event_queues}).take();
    sockaddr_storage address{};
    address.ss_family = AF_INET;
    addresses.push_back(address);
    void* object = nullptr;
    nd2::open_adapter(kernel->node(), addresses, IID_IND2Adapter, &object);
    adapter = static_cast<IND2Adapter*>(object);
    adapter->CreateOverlappedFile(&file);
    port = std::make_shared<nd2::CompletionPort>(nd2::waiter_of(kernel->node()));
    nd2::find_handle_as<nd2::OverlappedFile>(file)->bind(port, 7);
    event = nd2::create_event(kernel->node(), false);
    overlapped.hEvent = event;
  }
  ~MemoryFixture() {
    for (IUnknown* object : objects) object->Release();
    adapter->Release();
    nd2::close_handle(file);
    nd2::close_handle(event);
    port.reset();
    kernel.reset();
    CHECK(device.live_allocations() == 0);
    CHECK(device.mapped_pages == 0);
  }

  template <typename Interface>
  Interface* keep(void* object) {
    auto* const kept = static_cast<Interface*>(object);
    objects.push_back(kept);
    return kept;
  }
  IND2CompletionQueue* make_queue() {
    void* object = nullptr;
    REQUIRE(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 32, 0, 0, &object) == ND_SUCCESS);
    return keep<IND2CompletionQueue>(object);
  }
  IND2QueuePair* make_pair(IND2CompletionQueue* queue) {
    void* object = nullptr;
    REQUIRE(adapter->CreateQueuePair(IID_IND2QueuePair, queue, queue, nullptr, 8, 8, 2, 2, 64, &object) == ND_SUCCESS);
    auto* const pair = keep<IND2QueuePair>(object);
    core = nd2::QueuePair::find(pair)->core();
    return pair;
  }
  IND2SharedReceiveQueue* make_shared() {
    void* object = nullptr;
    REQUIRE(adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 2, 0, 0, &object) == ND_SUCCESS);
    return keep<IND2SharedReceiveQueue>(object);
  }
  IND2MemoryRegion* make_region() {
    void* object = nullptr;
    REQUIRE(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, &object) == ND_SUCCESS);
    return keep<IND2MemoryRegion>(object);
  }
  IND2MemoryWindow* make_window() {
    void* object = nullptr;
    REQUIRE(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
    return keep<IND2MemoryWindow>(object);
  }
  bool no_request_left() {
    return overlapped.Internal != ND_PENDING && !port->try_take().has_value() &&
           !nd2::find_handle_as<nd2::Event>(event)->try_take();
  }
  bool request_done() {
    const auto packet = port->try_take();
    return packet && packet->overlapped == &overlapped && packet->key == 7 &&
           nd2::find_handle_as<nd2::Event>(event)->try_take();
  }
  std::uint32_t cqn() const { return device.completion_queues.begin()->first; }

  FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  std::vector<sockaddr_storage> addresses;
  IND2Adapter* adapter = nullptr;
  HANDLE file = nullptr;
  HANDLE event = nullptr;
  std::shared_ptr<nd2::CompletionPort> port;
  OVERLAPPED overlapped{};
  std::vector<IUnknown*> objects;  ///< Released in this order
  std::shared_ptr<umd::QueuePair> core;
  std::array<std::uint8_t, 3 * 4096> memory{};
};

}  // namespace

TEST_CASE("no memory: opening the device, the adapter, the file") {
  FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  std::optional<Error> error;
  const unsigned opening = fail_each(
      [&] {
        auto opened = kmd::KernelDevice::open(device, {.mac = 2, .event_queues = 3});
        if (opened)
          kernel = opened.take();
        else
          error = opened.error();
        return opened.ok();
      },
      [&] {
        CHECK(error == Error::kOutOfMemory);
        CHECK(device.live_allocations() == 0);
        device.reset_function();
      });
  CHECK(opening > 10);
  void* object = nullptr;
  const std::vector<sockaddr_storage> addresses(1);
  CHECK(fail_each_call(ND_NO_MEMORY, ND_SUCCESS,
                       [&] { return nd2::open_adapter(kernel->node(), addresses, IID_IND2Adapter, &object); }) >= 3);
  auto* const adapter = static_cast<IND2Adapter*>(object);
  HANDLE file = nullptr;
  CHECK(fail_each_call(ND_NO_MEMORY, ND_SUCCESS, [&] { return adapter->CreateOverlappedFile(&file); }) >= 2);
  CHECK(nd2::close_handle(file));
  adapter->Release();
  kernel.reset();
  CHECK(device.live_allocations() == 0);
}

TEST_CASE("no memory: bringing a failed device up again") {
  FakeDevice device;
  auto kernel = kmd::KernelDevice::open(device, {.event_queues = 3}).take();
  kernel->fail(*kernel->life());
  std::optional<Error> error;
  CHECK(fail_each(
            [&] {
              auto done = kernel->recover();
              if (!done) error = done.error();
              return done.ok();
            },
            [&] { CHECK(error == Error::kOutOfMemory); }) >= 5);
  CHECK(kernel->life()->alive());
  CHECK(device.event_queues.size() == 3);
  kernel.reset();
  CHECK(device.live_allocations() == 0);
}

TEST_CASE_METHOD(MemoryFixture, "no memory: creating objects") {
  void* object = nullptr;
  SECTION("completion queue") {
    CHECK(fail_each_call(
              ND_NO_MEMORY, ND_SUCCESS,
              [&] { return adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 16, 0, 0, &object); },
              [&] { CHECK(device.completion_queues.empty()); }) >= 4);
    keep<IND2CompletionQueue>(object);
    make_queue();
  }
  SECTION("memory region") {
    CHECK(fail_each_call(ND_NO_MEMORY, ND_SUCCESS,
                         [&] { return adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, &object); }) >= 1);
    keep<IND2MemoryRegion>(object);
  }
  SECTION("memory window") {
    CHECK(fail_each_call(
              ND_INSUFFICIENT_RESOURCES, ND_SUCCESS,
              [&] { return adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object); },
              [&] { CHECK(device.windows.empty()); }) >= 2);
    keep<IND2MemoryWindow>(object);
    for (int i = 0; i < 3; ++i) make_window();
  }
  SECTION("shared receive queue") {
    CHECK(
        fail_each_call(
            ND_NO_MEMORY, ND_SUCCESS,
            [&] { return adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 2, 0, 0, &object); },
            [&] { CHECK(device.shared_queues.empty()); }) >= 5);
    keep<IND2SharedReceiveQueue>(object);
  }
  SECTION("queue pair") {
    auto* const queue = make_queue();
    auto* const other = make_queue();
    CHECK(
        fail_each_call(
            ND_INSUFFICIENT_RESOURCES, ND_SUCCESS,
            [&] { return adapter->CreateQueuePair(IID_IND2QueuePair, queue, other, nullptr, 8, 8, 2, 2, 64, &object); },
            [&] { CHECK(device.pairs.empty()); }) >= 8);
    objects.insert(objects.begin(), static_cast<IUnknown*>(object));
    REQUIRE(adapter->CreateQueuePair(IID_IND2QueuePair, queue, other, nullptr, 8, 8, 2, 2, 64, &object) == ND_SUCCESS);
    objects.insert(objects.begin(), static_cast<IUnknown*>(object));
  }
  SECTION("queue pair on a shared receive queue") {
    auto* const queue = make_queue();
    auto* const shared = make_shared();
    CHECK(fail_each_call(
              ND_INSUFFICIENT_RESOURCES, ND_SUCCESS,
              [&] {
                return adapter->CreateQueuePairWithSrq(IID_IND2QueuePair, queue, queue, shared, nullptr, 8, 2, 64,
                                                       &object);
              },
              [&] { CHECK(device.pairs.empty()); }) >= 8);
    objects.insert(objects.begin(), static_cast<IUnknown*>(object));
  }
}

TEST_CASE_METHOD(MemoryFixture, "no memory: registering and deregistering") {
  auto* const region = make_region();
  overlapped.Internal = ND_SUCCESS;
  CHECK(fail_each_call(
            ND_INSUFFICIENT_RESOURCES, ND_PENDING,
            [&] { return region->Register(memory.data(), memory.size(), 0, &overlapped); },
            [&] {
              CHECK(no_request_left());
              CHECK(device.regions.empty());
              CHECK(device.mapped_pages == 0);
              CHECK(region->GetLocalToken() == 0);
            }) >= 3);
  CHECK(request_done());
  const auto token = region->GetLocalToken();
  CHECK(fail_each_call(
            ND_INSUFFICIENT_RESOURCES, ND_PENDING, [&] { return region->Deregister(&overlapped); },
            [&] {
              CHECK(no_request_left());
              CHECK(region->GetLocalToken() == token);
            }) >= 1);
  CHECK(request_done());
  for (int i = 0; i < 4; ++i) REQUIRE(make_region()->Register(memory.data(), 1, 0, &overlapped) == ND_PENDING);
}

TEST_CASE_METHOD(MemoryFixture, "no memory: notifications, and their events need none") {
  auto* const queue = make_queue();
  auto* const shared = make_shared();
  CHECK(fail_each_call(
            ND_INSUFFICIENT_RESOURCES, ND_PENDING, [&] { return queue->Notify(ND_CQ_NOTIFY_ANY, &overlapped); },
            [&] { CHECK(no_request_left()); }) >= 2);
  device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion), .number = cqn()});
  CHECK(fail_each([&] { return kernel->node().takers().take_events() == 1; }, [] {}) == 0);
  CHECK(overlapped.Internal == ND_SUCCESS);
  CHECK(request_done());

  CHECK(fail_each_call(
            ND_INSUFFICIENT_RESOURCES, ND_PENDING, [&] { return shared->Notify(&overlapped); },
            [&] { CHECK(no_request_left()); }) >= 2);
  CHECK(fail_each_call(0, ND_SUCCESS, [&] { return shared->CancelOverlappedRequests(); }) == 0);
  CHECK(overlapped.Internal == static_cast<std::uint32_t>(ND_CANCELED));
  CHECK(request_done());

  REQUIRE(queue->Notify(ND_CQ_NOTIFY_ANY, &overlapped) == ND_PENDING);
  CHECK(fail_each([&] { return kernel->fail(*kernel->life()), kernel->node().takers().take_events() == 1; }, [] {}) ==
        0);
  CHECK(overlapped.Internal == static_cast<std::uint32_t>(ND_INTERNAL_ERROR));
  CHECK(request_done());
}

TEST_CASE_METHOD(MemoryFixture, "no memory: resizing loses no entry and no request") {
  auto* const queue = make_queue();
  auto* const shared = make_shared();
  auto* const pair = make_pair(queue);
  std::rotate(objects.rbegin(), objects.rbegin() + 1, objects.rend());
  for (std::uint32_t i = 1; i <= 5; ++i) {
    REQUIRE(pair->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
    device.finish_receive(core->qpn(), i);
  }
  CHECK(fail_each_call(ND_INSUFFICIENT_RESOURCES, ND_SUCCESS, [&] { return queue->Resize(1000); }) >= 1);
  ND2_RESULT results[8];
  REQUIRE(queue->GetResults(results, 8) == 5);
  for (ULONG i = 0; i < 5; ++i) CHECK(results[i].BytesTransferred == i + 1);
  REQUIRE(pair->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  device.finish_receive(core->qpn(), 9);
  REQUIRE(queue->GetResults(results, 8) == 1);
  CHECK(results[0].BytesTransferred == 9);

  for (int i = 0; i < 8; ++i) REQUIRE(shared->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  CHECK(fail_each_call(
            ND_INSUFFICIENT_RESOURCES, ND_SUCCESS, [&] { return shared->Modify(100, 0); },
            [&] { CHECK(shared->Receive(nullptr, nullptr, 0) == ND_NO_MORE_ENTRIES); }) >= 2);
  for (int i = 8; i < 100; ++i) REQUIRE(shared->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  CHECK(shared->Receive(nullptr, nullptr, 0) == ND_NO_MORE_ENTRIES);
  core.reset();
}

TEST_CASE_METHOD(MemoryFixture, "posting, polling and flushing need no memory") {
  auto* const queue = make_queue();
  auto* const shared = make_shared();
  auto* const pair = make_pair(queue);
  std::rotate(objects.rbegin(), objects.rbegin() + 1, objects.rend());
  auto* const region = make_region();
  REQUIRE(region->Register(memory.data(), memory.size(), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &overlapped) == ND_PENDING);
  auto* const window = make_window();
  const ND2_SGE sge{memory.data(), 16, region->GetLocalToken()};
  const auto needs_none = [&](auto&& call) { CHECK(fail_each_call(0, ND_SUCCESS, call) == 0); };
  needs_none([&] { return pair->Receive(nullptr, &sge, 1); });
  needs_none([&] { return shared->Receive(nullptr, &sge, 1); });
  CHECK(fail_each([&] { return core->connect({}).ok(); }, [] {}) == 0);
  needs_none([&] { return pair->Send(nullptr, &sge, 1, 0); });
  needs_none([&] { return pair->Send(nullptr, &sge, 1, ND_OP_FLAG_INLINE); });
  needs_none([&] { return pair->Write(nullptr, &sge, 1, 0, 0, 0); });
  needs_none([&] { return pair->Read(nullptr, &sge, 1, 0, 0, 0); });
  needs_none([&] { return pair->Bind(nullptr, region, window, memory.data(), 16, 0); });
  needs_none([&] { return pair->Invalidate(nullptr, window, 0); });
  // A full queue decodes.
  for (int i = 0; i < 2; ++i) REQUIRE(pair->Write(nullptr, &sge, 1, 0, 0, 0) == ND_SUCCESS);
  for (int i = 0; i < 8; ++i) device.finish_send(core->qpn());
  for (int i = 0; i < 8; ++i) needs_none([&] { return pair->Write(nullptr, &sge, 1, 0, 0, 0); });
  needs_none([&] { return pair->Flush(); });
  ND2_RESULT results[32];
  CHECK(fail_each([&] { return queue->GetResults(results, 32) == 17; }, [] {}) == 0);
  CHECK(fail_each([&] { return core->close().ok(); }, [] {}) == 0);
  core.reset();
}

TEST_CASE_METHOD(MemoryFixture, "no memory: windows and fast registrations of the kernel") {
  std::optional<Error> error;
  std::unique_ptr<kmd::KernelFastMr> region;
  CHECK(fail_each(
            [&] {
              auto made = kernel->create_fast_mr({.pd = 1, .max_pages = 300});
              if (made)
                region = made.take();
              else
                error = made.error();
              return made.ok();
            },
            [&] {
              CHECK(error == Error::kOutOfMemory);
              CHECK(device.fast_regions.empty());
            }) >= 2);
  const std::vector<std::uint64_t> pages(300, 4096);
  const FastRange range{.pages = pages, .length = 4096, .base = 0, .local_write = true};
  std::vector<std::uint32_t> keys;
  keys.reserve(8);
  for (int i = 0; i < 4; ++i) {
    static_cast<void>(fail_each(
        [&] {
          auto prepared = region->prepare(range);
          if (prepared)
            keys.push_back(prepared->key);
          else
            error = prepared.error();
          return prepared.ok();
        },
        [&] { CHECK(error == Error::kOutOfMemory); }));
  }
  for (const auto key : keys) CHECK(fail_each([&] { return region->release(key).ok(); }, [] {}) == 0);
  CHECK(fail_each([&] { return region->destroy().ok(); }, [] {}) == 0);
  region.reset();
}
