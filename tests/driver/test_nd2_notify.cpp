#include <catch2/catch.hpp>

#include <array>

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
  kernel->dispatch_events();
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
  kernel->dispatch_events();
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
  auto port = std::make_shared<nd2::CompletionPort>(*kernel);
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
  kernel->dispatch_events();
  REQUIRE(notify(ND_CQ_NOTIFY_ANY, requests[0]) == ND_PENDING);
  CHECK(state(requests[0]) == ND_SUCCESS);
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

TEST_CASE_METHOD(NotifyFixture, "Resize: entries and pending notifications stay; too small and too large change nothing") {
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
  CHECK(queue->Resize(100) == ND_NO_MEMORY);
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
  kernel->dispatch_events();
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
  auto manual = std::make_shared<nd2::Event>(*kernel, true);
  auto automatic = std::make_shared<nd2::Event>(*kernel, false);
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
