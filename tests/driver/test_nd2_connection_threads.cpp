// Connectors and listeners used by several threads at once (decisions 30), on an adapter that connects to itself; run
// under a thread sanitizer to see data races.
#include <arpa/inet.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "driver/kmd/connection_service.hpp"
#include "testbench/com_ptr.hpp"
#include "tests/driver/nd2_fixture.hpp"
#include "tests/driver/own_address.hpp"

using namespace rnic;
using test::generic;
using test::own_address;
using testbench::ComPtr;

namespace {

constexpr std::size_t kThreads = 8;
constexpr std::uint16_t kSharedPort = 7000, kOwnPorts = 7100;

/// 10.0.0.1 alone, and a thread that carries the datagrams of its connection manager back to it.
struct Loop {
  Loop() {
    device.threads = true;
    kernel =
        kmd::KernelDevice::open(device, {.mac = 0x0200'0000'0001,
                                         .event_queues = 1,
                                         .gids = {kmd::Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1}}})
            .take();
    kernel->connections().attach(true);
    sockaddr_storage storage{};
    const auto own = own_address(0);
    std::memcpy(&storage, &own, sizeof own);
    REQUIRE(nd2::open_adapter(kernel->node(), {storage}, IID_IND2Adapter, adapter.put()) == ND_SUCCESS);
    wire = std::thread([this] { carry(); });
  }
  ~Loop() {
    ended = true;
    device.wake();
    wire.join();
    adapter.reset();
  }

  void carry() {
    auto& connections = kernel->connections();
    while (!ended) {
      const std::uint64_t seen = device.wake_count();
      const std::uint64_t patience = connections.run_timers();
      bool any = false;
      while (const auto next = connections.next_outgoing()) {
        any = true;
        connections.receive(next->remote, next->local, next->mad);
      }
      if (!any && !ended) static_cast<void>(device.wait(seen, patience));
    }
  }
  void expect(bool right) { wrong += right ? 0 : 1; }
  /// All has its time: what was refused is remembered for some seconds, and longer if a slow thread asked for patience.
  bool all_gone() {
    for (int i = 0; i < 6000 && kernel->connections().endpoints() != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return kernel->connections().endpoints() == 0;
  }

  test::FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  ComPtr<IND2Adapter> adapter;
  std::atomic<bool> ended{};
  std::atomic<int> wrong{};
  std::thread wire;
};

/// A request of this thread's, and what became of it.
struct Request {
  explicit Request(DeviceNode& of) : node(of) { block.hEvent = nd2::create_event(node); }
  ~Request() { nd2::close_handle(block.hEvent); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  template <typename Object>
  HRESULT finish(Object& object, HRESULT called) {
    return called == ND_PENDING ? object.GetOverlappedResult(&block, TRUE) : called;
  }

  DeviceNode& node;
  OVERLAPPED block{};
};

/// What one thread has: queues, and both ends of connections.
class Worker {
 public:
  Worker(Loop& of, std::size_t number) : of_(of), port_(static_cast<std::uint16_t>(kOwnPorts + number)) {
    of_.adapter->CreateOverlappedFile(&file_);
    expect(of_.adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file_, 64, 0, 0, cq_.put()) == ND_SUCCESS);
  }
  ~Worker() {
    cq_.reset();
    nd2::close_handle(file_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ComPtr<IND2Listener> listen(std::uint16_t port) {
    ComPtr<IND2Listener> listener;
    expect(of_.adapter->CreateListener(IID_IND2Listener, file_, listener.put()) == ND_SUCCESS);
    const auto own = own_address(port);
    expect(listener->Bind(generic(own), sizeof own) == ND_SUCCESS);
    expect(listener->Listen(0) == ND_SUCCESS);
    return listener;
  }

  /// Connects to itself by its own listener, moves a message, and parts.
  void alone() {
    const auto listener = listen(port_);
    Ends ends(*this);
    meet(*listener, port_, ends);
    expect(ends.to->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
    expect(ends.from->Send(nullptr, nullptr, 0, 0) == ND_SUCCESS);
    of_.device.finish_send(core(*ends.from).qpn());
    of_.device.finish_receive(core(*ends.to).qpn(), 0);
    expect(results() == 2);
    part(ends);
  }

  /// Accepts whoever comes to a listener of all threads, and connects to whoever takes it.
  void among_all(IND2Listener& listener) {
    Ends ends(*this);
    meet(listener, kSharedPort, ends);
    expect(ends.from->Send(nullptr, nullptr, 0, 0) == ND_SUCCESS);
    of_.device.finish_send(core(*ends.from).qpn());
    expect(results() == 1);
    part(ends);
  }

  /// The request is refused, or given up, while everything else goes on.
  void in_vain(bool refuse) {
    const auto listener = listen(port_);
    Ends ends(*this);
    Request asked(node()), incoming(node());
    expect(listener->GetConnectionRequest(ends.b.get(), &incoming.block) == ND_PENDING);
    const auto to = own_address(port_);
    expect(ends.a->Connect(ends.from.get(), generic(to), sizeof to, 1, 1, nullptr, 0, &asked.block) == ND_PENDING);
    expect(listener->GetOverlappedResult(&incoming.block, TRUE) == ND_SUCCESS);
    if (refuse) {
      expect(ends.b->Reject("no", 3) == ND_SUCCESS);
      expect(ends.a->GetOverlappedResult(&asked.block, TRUE) == ND_CONNECTION_REFUSED);
    } else {
      expect(ends.a->CancelOverlappedRequests() == ND_SUCCESS);
      expect(ends.a->GetOverlappedResult(&asked.block, TRUE) == ND_CANCELED);
    }
  }

 private:
  struct Ends {
    explicit Ends(Worker& of) {
      for (auto* pair : {&from, &to}) {
        of.expect(of.of_.adapter->CreateQueuePair(IID_IND2QueuePair, of.cq_.get(), of.cq_.get(), nullptr, 4, 4, 1, 1, 0,
                                                  pair->put()) == ND_SUCCESS);
      }
      for (auto* connector : {&a, &b}) {
        of.expect(of.of_.adapter->CreateConnector(IID_IND2Connector, of.file_, connector->put()) == ND_SUCCESS);
      }
      const auto own = own_address(0);
      of.expect(a->Bind(generic(own), sizeof own) == ND_SUCCESS);
    }
    ComPtr<IND2QueuePair> from, to;
    ComPtr<IND2Connector> a, b;  ///< a asks, with `from`; b accepts, with `to`
  };

  void expect(bool right) { of_.expect(right); }
  DeviceNode& node() { return of_.kernel->node(); }
  static umd::QueuePair& core(IND2QueuePair& pair) { return *nd2::QueuePair::find(&pair)->core(); }
  ULONG results() {
    std::array<ND2_RESULT, 8> got;
    return cq_->GetResults(got.data(), static_cast<ULONG>(got.size()));
  }

  void meet(IND2Listener& listener, std::uint16_t port, Ends& ends) {
    Request incoming(node()), asked(node()), accepted(node()), completed(node());
    expect(listener.GetConnectionRequest(ends.b.get(), &incoming.block) == ND_PENDING);
    const auto to = own_address(port);
    expect(ends.a->Connect(ends.from.get(), generic(to), sizeof to, 4, 4, "hello", 6, &asked.block) == ND_PENDING);
    expect(listener.GetOverlappedResult(&incoming.block, TRUE) == ND_SUCCESS);
    expect(ends.b->Accept(ends.to.get(), 4, 4, "yes", 4, &accepted.block) == ND_PENDING);
    expect(ends.a->GetOverlappedResult(&asked.block, TRUE) == ND_SUCCESS);
    expect(completed.finish(*ends.a, ends.a->CompleteConnect(&completed.block)) == ND_SUCCESS);
    expect(ends.b->GetOverlappedResult(&accepted.block, TRUE) == ND_SUCCESS);
  }

  /// The side that has asked ends it; the other one may be another thread's, and so may who ends ours.
  void part(Ends& ends) {
    Request told(node()), ended(node());
    const HRESULT notify = ends.b->NotifyDisconnect(&told.block);
    expect(ended.finish(*ends.a, ends.a->Disconnect(&ended.block)) == ND_SUCCESS);
    expect(told.finish(*ends.b, notify) == ND_SUCCESS);
    expect(results() == 0);
  }

  Loop& of_;
  const std::uint16_t port_;
  HANDLE file_{};
  ComPtr<IND2CompletionQueue> cq_;
};

}  // namespace

TEST_CASE_METHOD(Loop, "eight threads on one adapter: each connects, sends, disconnects, is refused, gives up") {
  constexpr int kRounds = 12;
  {
    Worker owner(*this, kThreads);
    const auto shared = owner.listen(kSharedPort);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Worker worker(*this, i);
        for (int round = 0; round < kRounds; ++round) {
          worker.among_all(*shared);
          worker.alone();
          worker.in_vain((round + static_cast<int>(i)) % 2 == 0);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  CHECK(wrong == 0);
  CHECK(all_gone());
  CHECK(device.completion_queues.empty());
  CHECK(device.pairs.empty());
}

TEST_CASE_METHOD(Loop, "one connector is bound by one thread, or waits at a listener for another, never both") {
  constexpr int kRounds = 60;
  {
    Worker owner(*this, kThreads);
    HANDLE file = nullptr;
    REQUIRE(adapter->CreateOverlappedFile(&file) == ND_SUCCESS);
    const auto listener = owner.listen(kSharedPort);
    for (int round = 0; round < kRounds; ++round) {
      ComPtr<IND2Connector> connector;
      REQUIRE(adapter->CreateConnector(IID_IND2Connector, file, connector.put()) == ND_SUCCESS);
      std::atomic<std::size_t> ready{};
      std::atomic<int> bound{}, waits{};
      std::atomic<bool> binds_over{};
      const auto all_at_once = [&] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
      };
      std::vector<std::thread> binding, waiting;
      for (std::size_t i = 0; i < kThreads / 2; ++i) {
        binding.emplace_back([&, i] {
          const auto own = own_address(static_cast<std::uint16_t>(kOwnPorts + i));
          all_at_once();
          bound += connector->Bind(generic(own), sizeof own) == ND_SUCCESS ? 1 : 0;
        });
        waiting.emplace_back([&] {
          Request request(kernel->node());
          all_at_once();
          const HRESULT called = listener->GetConnectionRequest(connector.get(), &request.block);
          if (called != ND_PENDING) return expect(called == ND_CONNECTION_ACTIVE);
          ++waits;
          while (!binds_over) std::this_thread::yield();
          expect(listener->CancelOverlappedRequests() == ND_SUCCESS);
          expect(listener->GetOverlappedResult(&request.block, FALSE) == ND_CANCELED);
        });
      }
      for (auto& thread : binding) thread.join();
      binds_over = true;
      for (auto& thread : waiting) thread.join();
      CHECK(bound <= 1);
      CHECK((bound == 0) != (waits == 0));
    }
    nd2::close_handle(file);
  }
  CHECK(wrong == 0);
  CHECK(all_gone());
}
