#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::Nd2Fixture;

// Objects are used by several threads at once (decisions 30). Run under a thread sanitizer to see data races; here they
// show as lost or doubled completions, wrong statuses, and what is left behind.

namespace {

constexpr std::size_t kThreads = 8;

struct ThreadsFixture : Nd2Fixture {
  ThreadsFixture() { device.threads = true; }
  void expect(bool right) { wrong += right ? 0 : 1; }
  std::atomic<int> wrong{};
};

/// One thread's objects, as an application has them.
class Worker {
 public:
  explicit Worker(ThreadsFixture& of) : of_(of) {
    of_.adapter->CreateOverlappedFile(&file_);
    overlapped_.hEvent = nd2::create_event(of_.kernel->node());
    notified_.hEvent = nd2::create_event(of_.kernel->node(), false);
  }
  ~Worker() {
    nd2::close_handle(overlapped_.hEvent);
    nd2::close_handle(notified_.hEvent);
    nd2::close_handle(file_);
  }

  void round() {
    void* object = nullptr;
    of_.expect(of_.adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file_, 32, 0, 0, &object) == ND_SUCCESS);
    auto* const cq = static_cast<IND2CompletionQueue*>(object);
    of_.expect(of_.adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file_, &object) == ND_SUCCESS);
    auto* const region = static_cast<IND2MemoryRegion*>(object);
    of_.expect(of_.adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
    auto* const window = static_cast<IND2MemoryWindow*>(object);
    auto* const pair = of_.make_pair(cq);
    const auto core = nd2::QueuePair::find(pair)->core();
    of_.expect(core->connect({}).ok());

    const HRESULT entered =
        region->Register(memory_.data(), memory_.size(), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &overlapped_);
    of_.expect(entered == ND_PENDING && region->GetOverlappedResult(&overlapped_, TRUE) == ND_SUCCESS);
    of_.expect(cq->Notify(ND_CQ_NOTIFY_ANY, &notified_) == ND_PENDING);
    const ND2_SGE sge{memory_.data(), 64, region->GetLocalToken()};
    of_.expect(pair->Receive(this, &sge, 1) == ND_SUCCESS);
    of_.expect(pair->Bind(this, region, window, memory_.data(), 64, ND_OP_FLAG_ALLOW_READ) == ND_SUCCESS);
    of_.expect(pair->Send(this, &sge, 1, 0) == ND_SUCCESS);
    for (int i = 0; i < 2; ++i) of_.device.finish_send(core->qpn());
    of_.device.finish_receive(core->qpn(), 64);
    of_.device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion),
                             .number = nd2::CompletionQueue::find(cq)->core()->cqn()});
    of_.expect(cq->GetOverlappedResult(&notified_, TRUE) == ND_SUCCESS);
    std::array<ND2_RESULT, 4> results;
    of_.expect(cq->GetResults(results.data(), 4) == 3);
    // What pends when everything goes is cancelled.
    of_.expect(cq->Notify(ND_CQ_NOTIFY_ANY, &notified_) == ND_PENDING);
    of_.expect(region->Deregister(&overlapped_) == ND_PENDING);
    of_.expect(region->GetOverlappedResult(&overlapped_, TRUE) == ND_SUCCESS);
    of_.expect(cq->Release() == 0);
    of_.expect(static_cast<HRESULT>(notified_.Internal) == ND_CANCELED);
    of_.expect(window->Release() == 0);
    of_.expect(pair->Release() == 0);
    of_.expect(region->Release() == 0);
  }

 private:
  ThreadsFixture& of_;
  std::array<std::uint8_t, 4096> memory_{};
  HANDLE file_{};
  OVERLAPPED overlapped_{};
  OVERLAPPED notified_{};
};

}  // namespace

TEST_CASE_METHOD(ThreadsFixture, "eight threads on one adapter, each with its objects") {
  constexpr int kRounds = 25;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      Worker worker(*this);
      for (int round = 0; round < kRounds; ++round) worker.round();
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(device.regions.empty());
  CHECK(device.completion_queues.empty());
  CHECK(device.pairs.empty());
  CHECK(device.mapped_pages == 0);
}

TEST_CASE_METHOD(ThreadsFixture, "eight threads on one completion queue, with GetResults and Notify") {
  constexpr std::size_t kEach = 500;
  auto* const shared = make_queue(1024);
  std::vector<std::atomic<int>> seen(kThreads * kEach);
  std::atomic<std::size_t> reaped{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      auto* const own = make_pair(shared, 32);
      const auto own_core = nd2::QueuePair::find(own)->core();
      expect(own_core->connect({}).ok());
      OVERLAPPED notified{};
      notified.hEvent = nd2::create_event(kernel->node());
      bool armed = false;
      std::array<ND2_RESULT, 16> results;
      for (std::size_t posted = 0; reaped < kThreads * kEach;) {
        if (posted < kEach &&
            own->Write(reinterpret_cast<void*>(i * kEach + posted), nullptr, 0, 0, 0, 0) == ND_SUCCESS) {
          ++posted;
          device.finish_send(own_core->qpn());
        }
        if (!armed) expect(shared->Notify(ND_CQ_NOTIFY_ANY, &notified) == ND_PENDING);
        armed = shared->GetOverlappedResult(&notified, FALSE) == ND_PENDING;
        const ULONG got = shared->GetResults(results.data(), static_cast<ULONG>(results.size()));
        for (ULONG k = 0; k < got; ++k) {
          expect(results[k].Status == ND_SUCCESS);
          ++seen[reinterpret_cast<std::size_t>(results[k].RequestContext)];
        }
        reaped += got;
        if (got == 0) std::this_thread::yield();
      }
      expect(shared->CancelOverlappedRequests() == ND_SUCCESS);
      expect(shared->GetOverlappedResult(&notified, TRUE) != ND_PENDING);
      nd2::close_handle(notified.hEvent);
      expect(own->Release() == 0);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(shared->Release() == 0);
  CHECK(wrong == 0);
  for (const auto& count : seen) REQUIRE(count == 1);
}

TEST_CASE_METHOD(ThreadsFixture,
                 "Flush while a thread posts of each kind: every request is canceled, once, in its order") {
  constexpr std::size_t kEach = 200;
  constexpr std::array kKinds{Nd2RequestTypeReceive,    Nd2RequestTypeSend, Nd2RequestTypeBind,
                              Nd2RequestTypeInvalidate, Nd2RequestTypeRead, Nd2RequestTypeWrite};
  auto* const cq = make_queue(1024);
  auto* const own = make_pair(cq, 32);
  expect(nd2::QueuePair::find(own)->core()->connect({}).ok());
  auto* const region = make_region();
  alignas(4096) static std::array<std::uint8_t, 4096> memory;
  expect(region->Register(memory.data(), memory.size(), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &overlapped) == ND_PENDING &&
         region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
  const ND2_SGE sge{memory.data(), 64, region->GetLocalToken()};
  std::array<IND2MemoryWindow*, 2> windows{};
  for (auto& window : windows)
    expect(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, reinterpret_cast<void**>(&window)) == ND_SUCCESS);
  const auto post = [&](ND2_REQUEST_TYPE kind, void* context) {
    switch (kind) {
      case Nd2RequestTypeReceive: return own->Receive(context, &sge, 1);
      case Nd2RequestTypeSend: return own->Send(context, &sge, 1, 0);
      case Nd2RequestTypeBind: return own->Bind(context, region, windows[0], memory.data(), 64, ND_OP_FLAG_ALLOW_READ);
      case Nd2RequestTypeInvalidate: return own->Invalidate(context, windows[1], 0);
      case Nd2RequestTypeRead: return own->Read(context, &sge, 1, 0x1000, 7, 0);
      default: return own->Write(context, &sge, 1, 0x1000, 7, 0);
    }
  };
  const auto context_of = [](std::size_t kind, std::size_t i) { return reinterpret_cast<void*>(kind * kEach + i); };
  // The device executes nothing: one of each kind is outstanding at the flush, and the queue is full until then.
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
    expect(post(kKinds[kind], context_of(kind, 0)) == ND_SUCCESS);
  std::atomic<std::size_t> posted{};
  std::vector<std::thread> threads;
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    threads.emplace_back([&, kind] {
      for (std::size_t i = 1; i < kEach;) {
        const HRESULT status = post(kKinds[kind], context_of(kind, i));
        expect(status == ND_SUCCESS || status == ND_NO_MORE_ENTRIES);
        if (status == ND_SUCCESS) {
          ++i;
          ++posted;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  while (posted < 20) std::this_thread::yield();
  CHECK(own->Flush() == ND_SUCCESS);
  std::array<std::size_t, kKinds.size()> seen{};
  std::array<ND2_RESULT, 16> results;
  for (std::size_t left = kKinds.size() * kEach; left != 0;) {
    const ULONG got = cq->GetResults(results.data(), static_cast<ULONG>(results.size()));
    for (ULONG k = 0; k < got; ++k) {
      const auto context = reinterpret_cast<std::size_t>(results[k].RequestContext);
      const std::size_t kind = context / kEach;
      REQUIRE(kind < kKinds.size());
      REQUIRE(results[k].RequestType == kKinds[kind]);
      REQUIRE(results[k].Status == ND_CANCELED);
      REQUIRE(context % kEach == seen[kind]++);
    }
    left -= got;
    if (got == 0) std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  CHECK(cq->GetResults(results.data(), 1) == 0);
  CHECK(wrong == 0);
  for (auto* window : windows) CHECK(window->Release() == 0);
  CHECK(own->Release() == 0);
  CHECK(cq->Release() == 0);
  CHECK(region->Deregister(&overlapped) == ND_PENDING);
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
  CHECK(region->Release() == 0);
}
