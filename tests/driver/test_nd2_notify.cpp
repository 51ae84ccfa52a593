#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "driver/win32/windows.h"
#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::Nd2Fixture;

namespace {

struct NotifyFixture : Nd2Fixture {
  NotifyFixture() { open_pair(false); }
  ~NotifyFixture() { queue->CancelOverlappedRequests(); }
  HRESULT notify(ULONG type, OVERLAPPED& request) { return queue->Notify(type, &request); }
  std::size_t arms() {
    std::size_t count = 0;
    for (const auto& write : device.doorbells) {
      count += write.offset % 4096 == hw::uar::kCqDoorbell && hw::CqDoorbell::from_word(write.value).arm != 0;
    }
    return count;
  }
  static HRESULT state(const OVERLAPPED& request) { return static_cast<HRESULT>(request.Internal); }
  // Requests that may still be pending when a test ends, so they live as long as the fixture.
  std::array<OVERLAPPED, 4> requests{};
  OVERLAPPED& first = requests[0];
  OVERLAPPED& second = requests[1];

  hw::CqArm armed() { return device.completion_queues.at(cqn()).arm; }
};

}  // namespace

TEST_CASE_METHOD(NotifyFixture, "an event completes every pending Notify, once") {
  CHECK(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
  CHECK(notify(ND_CQ_NOTIFY_ANY, second) == ND_PENDING);
  CHECK(arms() == 1);
  CHECK(queue->GetOverlappedResult(&first, FALSE) == ND_PENDING);
  completion_event();
  kernel->node().takers().take_events();
  CHECK(queue->GetOverlappedResult(&first, FALSE) == ND_SUCCESS);
  CHECK(queue->GetOverlappedResult(&second, FALSE) == ND_SUCCESS);
  CHECK(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
  CHECK(state(first) == ND_PENDING);
  CHECK(arms() == 2);
}

TEST_CASE_METHOD(NotifyFixture, "waiting lets the event arrive") {
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, overlapped) == ND_PENDING);
  CHECK_FALSE(event_is_set());
  const auto start = device.now_ns();
  device.on_time = [&, fired = false]() mutable {
    if (fired || device.now_ns() < start + 30'000) return;
    fired = true;
    completion_event();
  };
  SECTION("in GetOverlappedResult") { CHECK(queue->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS); }
  SECTION("on the event") {
    CHECK(nd2::find_handle_as<nd2::Event>(event)->wait());
    CHECK(status() == ND_SUCCESS);
  }
  CHECK(device.now_ns() >= start + 30'000);
  CHECK(device.now_ns() < start + 60'000);
}

TEST_CASE_METHOD(NotifyFixture, "the event of a request that begins is not set until it ends") {
  nd2::find_handle_as<nd2::Event>(event)->set();
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, overlapped) == ND_PENDING);
  CHECK_FALSE(event_is_set());
  completion_event();
  kernel->node().takers().take_events();
  CHECK(event_is_set());
}

TEST_CASE_METHOD(NotifyFixture, "who waits takes the event of the request, if it is one that resets itself") {
  const bool manual = GENERATE(false, true);
  const HANDLE own = first.hEvent = nd2::create_event(kernel->node(), manual);
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
  device.on_time = [&, fired = false]() mutable {
    if (!std::exchange(fired, true)) completion_event();
  };
  CHECK(queue->GetOverlappedResult(&first, TRUE) == ND_SUCCESS);
  device.on_time = nullptr;
  CHECK(nd2::find_handle_as<nd2::Event>(own)->try_take() == manual);
  nd2::close_handle(own);
}

TEST_CASE_METHOD(NotifyFixture, "waiting needs an event") {
  auto& request = first;
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, request) == ND_PENDING);
  CHECK(queue->GetOverlappedResult(&request, TRUE) == ND_INVALID_HANDLE);
  CHECK(queue->GetOverlappedResult(nullptr, TRUE) == ND_INVALID_PARAMETER_1);
}

TEST_CASE_METHOD(NotifyFixture, "kinds: a stronger arm upgrades, a weaker one rides along") {
  CHECK(notify(ND_CQ_NOTIFY_ERRORS, requests[0]) == ND_PENDING);
  CHECK(armed() == hw::CqArm::kErrors);
  CHECK(notify(ND_CQ_NOTIFY_SOLICITED, requests[1]) == ND_PENDING);
  CHECK(armed() == hw::CqArm::kSolicited);
  CHECK(notify(ND_CQ_NOTIFY_ANY, requests[2]) == ND_PENDING);
  CHECK(armed() == hw::CqArm::kAny);
  CHECK(notify(ND_CQ_NOTIFY_SOLICITED, requests[3]) == ND_PENDING);
  CHECK(arms() == 3);
  completion_event();
  kernel->node().takers().take_events();
  for (const auto& request : requests) CHECK(state(request) == ND_SUCCESS);
  CHECK(notify(3, requests[0]) == ND_INVALID_PARAMETER_1);
}

TEST_CASE_METHOD(NotifyFixture, "an event that nobody waited for is kept for the next Notify, not for one of errors") {
  auto& request = first;
  auto& errors = second;
  completion_event();
  CHECK(notify(ND_CQ_NOTIFY_ERRORS, errors) == ND_PENDING);
  CHECK(state(errors) == ND_PENDING);
  CHECK(notify(ND_CQ_NOTIFY_ANY, request) == ND_PENDING);
  CHECK(state(request) == ND_SUCCESS);
  CHECK(state(errors) == ND_PENDING);
  CHECK(notify(ND_CQ_NOTIFY_ANY, request) == ND_PENDING);
  CHECK(state(request) == ND_PENDING);
}

TEST_CASE_METHOD(NotifyFixture, "an event in memory belongs to the Notify before, not to the one that finds it") {
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
  completion_event();
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, second) == ND_PENDING);
  CHECK(state(first) == ND_SUCCESS);
  CHECK(state(second) == ND_PENDING);
}

TEST_CASE_METHOD(NotifyFixture, "cancelling completes in order, into the port as well") {
  auto port = std::make_shared<nd2::CompletionPort>(nd2::waiter_of(kernel->node()));
  REQUIRE(nd2::find_handle_as<nd2::OverlappedFile>(file)->bind(port, 1));
  for (auto& request : requests) REQUIRE(notify(ND_CQ_NOTIFY_ANY, request) == ND_PENDING);
  CHECK(queue->CancelOverlappedRequests() == ND_SUCCESS);
  for (auto& request : requests) {
    auto packet = port->try_take();
    REQUIRE(packet.has_value());
    CHECK(packet->overlapped == &request);
    CHECK(packet->status == ND_CANCELED);
    CHECK(state(request) == ND_CANCELED);
  }
  CHECK(queue->CancelOverlappedRequests() == ND_SUCCESS);
  // The device still has the arm; what it reports is not lost.
  completion_event();
  kernel->node().takers().take_events();
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, requests[0]) == ND_PENDING);
  CHECK(state(requests[0]) == ND_SUCCESS);
}

TEST_CASE_METHOD(NotifyFixture, "CancelIoEx of the file cancels one Notify, or all") {
  for (auto& request : requests) REQUIRE(notify(ND_CQ_NOTIFY_ANY, request) == ND_PENDING);
  CHECK_FALSE(CancelIoEx(file, &overlapped));
  CHECK(CancelIoEx(file, &second));
  for (auto& request : requests) CHECK(state(request) == (&request == &second ? ND_CANCELED : ND_PENDING));
  CHECK(CancelIoEx(file, nullptr));
  for (auto& request : requests) CHECK(state(request) == ND_CANCELED);
  CHECK_FALSE(CancelIoEx(file, nullptr));
}

TEST_CASE_METHOD(NotifyFixture,
                 "what a cancelled ANY leaves is for a later ANY, for a SOLICITED only if such an entry waits") {
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
  REQUIRE(queue->CancelOverlappedRequests() == ND_SUCCESS);
  const auto receive = [&](bool solicited, hw::CqeStatus ends = hw::CqeStatus::kSuccess) {
    REQUIRE(pair->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
    device.finish_receive(core->qpn(), 1, ends, solicited);
  };
  receive(false);
  completion_event();
  kernel->node().takers().take_events();
  REQUIRE(notify(ND_CQ_NOTIFY_SOLICITED, second) == ND_PENDING);
  CHECK(state(second) == ND_PENDING);
  SECTION("an ordinary entry is none") {
    CHECK(arms() == 2);  // it is for the device to say when one comes
    REQUIRE(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
    CHECK(state(first) == ND_SUCCESS);
    CHECK(state(second) == ND_PENDING);
    receive(true);
    completion_event();
    kernel->node().takers().take_events();
    CHECK(state(second) == ND_SUCCESS);
  }
  SECTION("a solicited or failed one is") {
    REQUIRE(queue->CancelOverlappedRequests() == ND_SUCCESS);
    const bool failed = GENERATE(false, true);
    receive(!failed, failed ? hw::CqeStatus::kLocLenErr : hw::CqeStatus::kSuccess);
    REQUIRE(notify(ND_CQ_NOTIFY_SOLICITED, second) == ND_PENDING);
    CHECK(state(second) == ND_SUCCESS);
  }
}

TEST_CASE_METHOD(NotifyFixture, "what a cancelled ANY has armed is no event for a SOLICITED that pends") {
  const auto receive = [&](bool solicited, hw::CqeStatus ends = hw::CqeStatus::kSuccess) {
    REQUIRE(pair->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
    device.finish_receive(core->qpn(), 1, ends, solicited);
  };
  const auto event = [&] {
    completion_event();
    kernel->node().takers().take_events();
  };
  ND2_RESULT result{};
  receive(true);  // of before, read or not
  if (GENERATE(true, false)) REQUIRE(queue->GetResults(&result, 1) == 1);
  const bool one = GENERATE(true, false);
  const bool together = GENERATE(true, false);
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
  if (together) REQUIRE(notify(ND_CQ_NOTIFY_SOLICITED, second) == ND_PENDING);
  if (together || one) {
    REQUIRE(CancelIoEx(file, &first));
  } else {
    REQUIRE(queue->CancelOverlappedRequests() == ND_SUCCESS);
  }
  if (!together) REQUIRE(notify(ND_CQ_NOTIFY_SOLICITED, second) == ND_PENDING);
  CHECK(state(first) == ND_CANCELED);
  for (int i = 0; i < 3; ++i) {
    receive(false);
    device.completion_queues.at(cqn()).arm = hw::CqArm::kNone;  // the event has used it up
    event();
    CHECK(state(second) == ND_PENDING);
    CHECK(armed() == hw::CqArm::kSolicited);
  }
  SECTION("a solicited or failed one is") {
    const bool failed = GENERATE(false, true);
    receive(!failed, failed ? hw::CqeStatus::kLocLenErr : hw::CqeStatus::kSuccess);
    // Another thread may read it before the event is taken.
    if (GENERATE(true, false)) {
      while (queue->GetResults(&result, 1) == 1) continue;
    }
    event();
    CHECK(state(second) == ND_SUCCESS);
  }
  SECTION("the plain ones are for a later ANY") {
    REQUIRE(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
    CHECK(state(first) == ND_SUCCESS);
    CHECK(state(second) == ND_PENDING);
  }
  SECTION("a solicited one is, however many have come since, and no number of plain ones is") {
    const bool solicited = GENERATE(false, true);
    receive(solicited);
    for (int i = 0; i < 200; ++i) {  // more than the ring holds
      receive(false);
      while (queue->GetResults(&result, 1) == 1) continue;
    }
    event();
    CHECK(state(second) == (solicited ? ND_SUCCESS : ND_PENDING));
  }
}

TEST_CASE_METHOD(NotifyFixture, "a call that fails at once leaves the OVERLAPPED as it was") {
  first.Internal = ND_SUCCESS;
  first.InternalHigh = 77;
  const HANDLE good = first.hEvent = nd2::create_event(kernel->node());
  nd2::find_handle_as<nd2::Event>(good)->set();
  const auto untouched = [&] {
    return first.Internal == ND_SUCCESS && first.InternalHigh == 77 &&
           nd2::find_handle_as<nd2::Event>(good)->try_take();
  };
  CHECK(queue->Notify(7, &first) == ND_INVALID_PARAMETER_1);
  CHECK(untouched());
  device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCqError), .number = cqn()});
  CHECK(queue->Notify(ND_CQ_NOTIFY_ANY, &first) == ND_BUFFER_OVERFLOW);
  CHECK(untouched());
  auto* const region = make_region();
  CHECK(region->Deregister(&first) == ND_INVALID_DEVICE_STATE);
  CHECK(untouched());
  device.dma_allocations_left = 0;
  std::vector<std::uint8_t> large(4 << 20);
  CHECK(region->Register(large.data(), large.size(), 0, &first) == ND_INSUFFICIENT_RESOURCES);
  CHECK(untouched());
  device.dma_allocations_left = 100;
  region->Release();
  nd2::close_handle(good);
}

TEST_CASE_METHOD(NotifyFixture,
                 "an OVERLAPPED may be reused when its status is there: nothing of the old request touches it later") {
  // Decisions 60. One thread completes, the other polls the status, begins again at once, and looks at event and port.
  auto port = std::make_shared<nd2::CompletionPort>(nd2::waiter_of(kernel->node()));
  auto file_object = std::make_shared<nd2::OverlappedFile>();
  REQUIRE(file_object->bind(port, 1));
  auto happened = std::make_shared<nd2::Event>(nd2::waiter_of(kernel->node()), true);
  first.hEvent = nd2::open_handle(happened);
  constexpr int kRounds = 3'000;
  std::atomic<int> begun{0};
  std::array<nd2::OverlappedRequest, 2> slots;
  int early = 0;
  int packets_missing = 0;
  const auto begin = [&](int round) {
    auto& request = slots[static_cast<std::size_t>(round % 2)];
    request = {};
    if (nd2::OverlappedRequest::prepare(&first, file_object, request) != ND_SUCCESS) ++early;
    request.begin();
    begun = round + 1;
  };
  std::atomic<int> completed{0};
  std::atomic<bool> go{true};
  std::thread completer([&] {
    for (int round = 0; round < kRounds; ++round) {
      while (begun.load() <= round || !go.load()) std::this_thread::yield();
      go = false;
      slots[static_cast<std::size_t>(round % 2)].complete(ND_SUCCESS);
      completed = round + 1;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    begin(round);
    while (static_cast<HRESULT>(__atomic_load_n(&first.Internal, __ATOMIC_ACQUIRE)) == ND_PENDING)
      std::this_thread::yield();
    packets_missing += !port->try_take().has_value();
    happened->reset();  // as the next use does
    while (completed.load() <= round) std::this_thread::yield();
    early += happened->try_take();
    go = true;
  }
  completer.join();
  CHECK(early == 0);
  CHECK(packets_missing == 0);
  nd2::close_handle(first.hEvent);
}

TEST_CASE_METHOD(NotifyFixture, "status, event and packet of a request come together") {
  auto port = std::make_shared<nd2::CompletionPort>(nd2::waiter_of(kernel->node()));
  auto file_object = std::make_shared<nd2::OverlappedFile>();
  REQUIRE(file_object->bind(port, 1));
  auto happened = std::make_shared<nd2::Event>(nd2::waiter_of(kernel->node()), true);
  first.hEvent = nd2::open_handle(happened);
  nd2::OverlappedRequest request;
  REQUIRE(nd2::OverlappedRequest::prepare(&first, file_object, request) == ND_SUCCESS);
  request.begin();
  // One thread keeps the event, or the port, from being set; while it does, the status must not be there either.
  const bool hold_event = GENERATE(true, false);
  std::atomic<bool> held{false};
  std::atomic<bool> let_go{false};
  const auto hold = [&] {
    held = true;
    while (!let_go) std::this_thread::yield();
  };
  std::thread holder([&] {
    if (hold_event)
      happened->set(hold);
    else
      port->post(nd2::CompletionPort::Packets{}, hold);
  });
  while (!held) std::this_thread::yield();
  std::thread completer([&] { request.complete(ND_CANCELED); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const HRESULT meanwhile = state(first);
  let_go = true;
  holder.join();
  completer.join();
  CHECK(meanwhile == ND_PENDING);
  CHECK(state(first) == ND_CANCELED);
  CHECK(happened->try_take());
  CHECK(port->try_take().has_value());
  nd2::close_handle(first.hEvent);
}

TEST_CASE_METHOD(NotifyFixture, "an overrun fires every Notify and refuses later ones; what is queued can be read") {
  auto& pending = first;
  auto& late = second;
  REQUIRE(pair->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  device.finish_receive(core->qpn(), 3);
  REQUIRE(notify(ND_CQ_NOTIFY_ERRORS, pending) == ND_PENDING);
  device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCqError), .number = cqn()});
  CHECK(notify(ND_CQ_NOTIFY_ANY, late) == ND_BUFFER_OVERFLOW);
  CHECK(state(pending) == ND_BUFFER_OVERFLOW);
  ND2_RESULT result{};
  CHECK(queue->GetResults(&result, 1) == 1);
  CHECK(result.BytesTransferred == 3);
}

TEST_CASE_METHOD(NotifyFixture,
                 "Resize: entries and pending notifications stay; too small and too large change nothing") {
  for (int i = 0; i < 5; ++i) {
    REQUIRE(pair->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
    device.finish_receive(core->qpn(), static_cast<std::uint32_t>(i + 1));
  }
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, first) == ND_PENDING);
  const auto before = device.completion_queues.at(cqn()).base;
  CHECK(queue->Resize(4) == ND_BUFFER_OVERFLOW);
  CHECK(queue->Resize(0) == ND_INVALID_PARAMETER);
  CHECK(queue->Resize((1U << 20) - 7) == ND_INVALID_PARAMETER);
  device.next_status.push_back(hw::AdminStatus::kTooSmall);
  CHECK(queue->Resize(5) == ND_BUFFER_OVERFLOW);
  device.next_status.push_back(hw::AdminStatus::kBadState);
  CHECK(queue->Resize(5) == ND_BUFFER_OVERFLOW);
  device.dma_allocations_left = 0;
  CHECK(queue->Resize(100) == ND_INSUFFICIENT_RESOURCES);  // decisions 59
  device.dma_allocations_left = 100;
  CHECK(device.completion_queues.at(cqn()).base == before);
  CHECK(queue->Resize(5) == ND_SUCCESS);
  CHECK(queue->Resize(100) == ND_SUCCESS);
  CHECK(device.completion_queues.at(cqn()).base != before);
  CHECK(device.completion_queues.at(cqn()).arm == hw::CqArm::kAny);
  ND2_RESULT results[8];
  REQUIRE(queue->GetResults(results, 8) == 5);
  for (ULONG i = 0; i < 5; ++i) CHECK(results[i].BytesTransferred == i + 1);
  completion_event();
  kernel->node().takers().take_events();
  CHECK(state(first) == ND_SUCCESS);
  device.admin_hangs = true;
  CHECK(queue->Resize(100) == ND_DEVICE_REMOVED);
}

TEST_CASE_METHOD(NotifyFixture, "the rest of the interface") {
  USHORT group = 9;
  KAFFINITY affinity = 9;
  CHECK(queue->GetNotifyAffinity(&group, &affinity) == ND_SUCCESS);
  CHECK(group == 0);
  CHECK(queue->GetNotifyAffinity(nullptr, &affinity) == ND_INVALID_PARAMETER);
  CHECK(queue->GetNotifyAffinity(&group, nullptr) == ND_INVALID_PARAMETER);
}

TEST_CASE_METHOD(Nd2Fixture, "events: manual and automatic reset") {
  auto manual = std::make_shared<nd2::Event>(nd2::waiter_of(kernel->node()), true);
  auto automatic = std::make_shared<nd2::Event>(nd2::waiter_of(kernel->node()), false);
  manual->set();
  CHECK(manual->try_take());
  CHECK(manual->try_take());
  manual->reset();
  CHECK_FALSE(manual->try_take());
  CHECK_FALSE(manual->wait(1000));
  automatic->set();
  CHECK(automatic->wait());
  CHECK_FALSE(automatic->try_take());
}
