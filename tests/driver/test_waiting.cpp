#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

#include "driver/sleep_lock.hpp"
#include "tests/driver/driver_fixture.hpp"
#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::DriverFixture;
using test::FakeDevice;
using test::Nd2Fixture;

// Waiting is a primitive of the machine: whoever waits sleeps until something happened, and wakes then.

TEST_CASE("a sleep lock lets one thread in at a time") {
  FakeDevice device;
  device.threads = true;
  SleepLock lock(device);
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  int counted = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const SleepLock::Guard guard(lock);
        if (!guard || ++inside != 1) overlapped = true;
        ++counted;
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(overlapped);
  CHECK(counted == 8000);
}

TEST_CASE("a thread that waits for an event looks only when something happened") {
  DriverFixture fixture;
  fixture.device.on_time = [&, start = fixture.device.now_ns()] {
    if (fixture.device.now_ns() == start + 5'000'000) fixture.device.wake();
  };
  unsigned looks = 0;
  CHECK_FALSE(umd::wait_until(
      fixture.kernel->node(), [&] { return ++looks == 100; }, 10'000'000));
  CHECK(looks <= 3);
}

TEST_CASE("an event through another vector than the first wakes the waiting thread") {
  FakeDevice device;
  auto kernel = kmd::KernelDevice::open(device, {.mac = 0, .event_queues = 3}).take();
  bool seen = false;
  struct Sink final : EventSink {
    explicit Sink(bool& s) : flag(s) {}
    void on_event(const hw::Eqe&) override { flag = true; }
    bool& flag;
  };
  auto sink = std::make_shared<Sink>(seen);
  const auto process = umd::ProcessContext::open(kernel->node()).take();
  kernel->events().subscribe(EventTable::Of::kCq, 5, sink);
  const auto start = device.now_ns();
  device.on_time = [&, sent = false]() mutable {
    if (sent || device.now_ns() < start + 20'000) return;
    sent = true;
    device.write_eqe(2, {.event_type = 1, .number = 5});
  };
  CHECK(umd::wait_until(kernel->node(), [&] { return seen; }));
  CHECK(device.now_ns() < start + 40'000);
}

TEST_CASE_METHOD(Nd2Fixture, "an event set, a packet posted by one thread wakes another at once") {
  device.threads = true;
  auto wake = std::make_shared<nd2::Event>(nd2::waiter_of(kernel->node()), false);
  auto port = std::make_shared<nd2::CompletionPort>(nd2::waiter_of(kernel->node()));
  std::atomic<int> woken{0};
  std::thread first([&] { woken += wake->wait(); });
  std::thread second([&] { woken += port->take().has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(woken == 0);
  const auto start = std::chrono::steady_clock::now();
  wake->set();
  port->post({.key = 1, .overlapped = nullptr, .status = ND_SUCCESS});
  first.join();
  second.join();
  CHECK(woken == 2);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a receive posted while the queue pair is flushed waits for the end of it, not for time") {
  DriverFixture fixture;
  fixture.device.threads = true;
  auto cq = fixture.make_cq();
  auto qp = fixture.make_qp(cq);
  std::atomic<bool> stop{false};
  std::atomic<bool> wrong{false};
  std::thread flusher([&] {
    while (!stop) wrong = wrong || !qp->flush().ok();
  });
  for (std::uint64_t id = 0; id < 500;) {
    auto posted = qp->post_receive({.id = id});
    fixture.drain(*cq);
    if (posted)
      ++id;
    else
      wrong = wrong || posted.error() != Error::kQueueFull;
  }
  stop = true;
  flusher.join();
  CHECK_FALSE(wrong);
}
