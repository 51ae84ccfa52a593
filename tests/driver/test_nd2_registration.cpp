#include <catch2/catch.hpp>

#include <memory>
#include <vector>

#include "driver/win32/windows.h"
#include "tests/driver/nd2_fixture.hpp"

// Expectations: decisions 23, 24, 34, 58, 60; sections 5 and 7 of the interface reference.

using namespace rnic;
using test::Nd2Fixture;

namespace {

struct RegistrationFixture : Nd2Fixture {
  RegistrationFixture() : region(make_region()) { device.admin_hangs = true; }
  ~RegistrationFixture() {
    device.admin_hangs = false;
    answer_all();
    if (region != nullptr) region->Release();
  }
  HRESULT enter(ULONG flags = 0) { return region->Register(memory.data(), memory.size(), flags, &overlapped); }
  void answer_all() {
    for (int i = 0; i < 40; ++i) device.answer_one_command();
  }
  /// Also answers those that come while time passes.
  void answer_from_now_on() {
    device.admin_hangs = false;
    answer_all();
  }
  void enter_and_finish() {
    REQUIRE(enter() == ND_PENDING);
    device.answer_one_command();
    REQUIRE(region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
  }
  bool interrupt_masked() {
    return (device.registers[hw::reg::kMsixTable + 16 * (hw::kMsixVectors - 1) + 8] >> 32 & 1) != 0;
  }
  IND2MemoryRegion* region;
  std::array<std::uint8_t, 8192> memory{};
};

}  // namespace

TEST_CASE_METHOD(RegistrationFixture, "Register pends until the device has answered") {
  CHECK(interrupt_masked());
  REQUIRE(enter() == ND_PENDING);
  CHECK_FALSE(interrupt_masked());
  CHECK(status() == ND_PENDING);
  CHECK(region->GetOverlappedResult(&overlapped, FALSE) == ND_PENDING);
  CHECK_FALSE(event_is_set());
  CHECK(region->GetLocalToken() == 0);
  CHECK(region->GetRemoteToken() == 0);
  OVERLAPPED other{};
  CHECK(region->Register(memory.data(), 1, 0, &other) == ND_INVALID_DEVICE_STATE);
  CHECK(region->Deregister(&other) == ND_INVALID_DEVICE_STATE);
  CHECK(other.Internal == 0);

  const std::uint64_t wakes = device.wake_count();
  device.answer_one_command();
  CHECK(device.wake_count() != wakes);  // who waits is woken
  CHECK(status() == ND_PENDING);        // and finishes it
  CHECK(region->GetOverlappedResult(&overlapped, FALSE) == ND_SUCCESS);
  CHECK(event_is_set());
  CHECK(region->GetLocalToken() != 0);
  CHECK(device.regions.contains(region->GetLocalToken()));
  CHECK(interrupt_masked());
}

TEST_CASE_METHOD(RegistrationFixture, "Deregister pends until the device has answered, and the pins stay until then") {
  enter_and_finish();
  const UINT32 token = region->GetLocalToken();
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  CHECK(region->GetOverlappedResult(&overlapped, FALSE) == ND_PENDING);
  CHECK(region->GetLocalToken() == token);
  CHECK(device.mapped_pages != 0);
  OVERLAPPED other{};
  CHECK(region->Deregister(&other) == ND_INVALID_DEVICE_STATE);
  device.answer_one_command();
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
  CHECK(device.mapped_pages == 0);
  CHECK(region->GetLocalToken() == 0);
  enter_and_finish();
  CHECK(region->GetLocalToken() != token);
}

TEST_CASE_METHOD(RegistrationFixture, "a wait for a registration ends with the device's interrupt") {
  int steps = 0;
  device.on_time = [&] {
    if (++steps == 3) device.answer_one_command();
  };
  REQUIRE(enter() == ND_PENDING);
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
  device.on_time = nullptr;
}

TEST_CASE_METHOD(RegistrationFixture, "what the device refuses is told, and leaves the region empty") {
  device.next_status.push_back(hw::AdminStatus::kBadParameter);
  REQUIRE(enter() == ND_PENDING);
  device.answer_one_command();
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_INVALID_PARAMETER);
  CHECK(region->GetLocalToken() == 0);
  CHECK(device.mapped_pages == 0);
  enter_and_finish();

  device.next_status.push_back(hw::AdminStatus::kInUse);
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  device.answer_one_command();
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_DEVICE_BUSY);
  CHECK(region->GetLocalToken() != 0);
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  device.answer_one_command();
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
}

TEST_CASE_METHOD(RegistrationFixture, "a Register that is cancelled is undone, and in the port when Cancel returns") {
  auto port = std::make_shared<nd2::CompletionPort>(nd2::waiter_of(kernel->node()));
  REQUIRE(nd2::find_handle_as<nd2::OverlappedFile>(file)->bind(port, 5));
  REQUIRE(enter() == ND_PENDING);
  device.on_time = [this] { answer_all(); };
  SECTION("by the region") { CHECK(region->CancelOverlappedRequests() == ND_SUCCESS); }
  SECTION("by the file") {
    OVERLAPPED other{};
    CHECK_FALSE(CancelIoEx(file, &other));
    CHECK(CancelIoEx(file, &overlapped));
    CHECK_FALSE(CancelIoEx(file, nullptr));
  }
  device.on_time = nullptr;
  const auto packet = port->try_take();
  REQUIRE(packet.has_value());
  CHECK(packet->overlapped == &overlapped);
  CHECK(packet->status == ND_CANCELED);
  CHECK(status() == ND_CANCELED);
  CHECK(region->GetLocalToken() == 0);
  CHECK(device.regions.empty());
  CHECK(device.mapped_pages == 0);
  enter_and_finish();
  CHECK(region->CancelOverlappedRequests() == ND_SUCCESS);  // nothing pends
  CHECK(region->GetLocalToken() != 0);
}

TEST_CASE_METHOD(RegistrationFixture, "a Deregister can't be cancelled, and is finished by the device") {
  enter_and_finish();
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  CHECK(region->CancelOverlappedRequests() == ND_UNSUCCESSFUL);
  CHECK(status() == ND_PENDING);
  device.answer_one_command();
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
}

TEST_CASE_METHOD(RegistrationFixture, "the last release cancels what pends, and gives everything back") {
  const bool deregister = GENERATE(false, true);
  if (deregister) {
    enter_and_finish();
    REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  } else {
    REQUIRE(enter() == ND_PENDING);
  }
  adapter->Release();
  adapter = nullptr;
  device.on_time = [this] { answer_all(); };
  CHECK(region->Release() == 0);
  region = nullptr;
  device.on_time = nullptr;
  CHECK(status() == ND_CANCELED);
  CHECK(event_is_set());
  CHECK(device.regions.empty());
  CHECK(device.mapped_pages == 0);
}

TEST_CASE_METHOD(RegistrationFixture, "when the device fails, what pends ends, and the pins come back") {
  const bool deregister = GENERATE(false, true);
  if (deregister) {
    enter_and_finish();
    REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  } else {
    REQUIRE(enter() == ND_PENDING);
  }
  device.take_away();
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == (deregister ? ND_SUCCESS : ND_DEVICE_REMOVED));
  CHECK(event_is_set());
  CHECK(region->GetLocalToken() == 0);
  CHECK(enter() == ND_DEVICE_REMOVED);
  CHECK(region->Release() == 0);
  region = nullptr;
  CHECK(device.mapped_pages == 0);
}

TEST_CASE_METHOD(RegistrationFixture, "a device that does not answer in time has failed") {
  REQUIRE(enter() == ND_PENDING);
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_DEVICE_REMOVED);
}

TEST_CASE_METHOD(RegistrationFixture, "more registrations than the device's ring has room for, of the same memory") {
  constexpr std::size_t kMany = 100;
  std::vector<OVERLAPPED> requests(kMany);
  std::vector<IND2MemoryRegion*> regions;
  // The device answers one command for every second look.
  unsigned looks = 0;
  device.on_time = [&] {
    if (++looks % 2 == 0) device.answer_one_command();
  };
  for (auto& request : requests) {
    request.hEvent = event;
    regions.push_back(make_region());
    REQUIRE(regions.back()->Register(memory.data(), memory.size(), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &request) ==
            ND_PENDING);
  }
  std::vector<UINT32> tokens;
  for (std::size_t i = 0; i < kMany; ++i) {
    REQUIRE(regions[i]->GetOverlappedResult(&requests[i], TRUE) == ND_SUCCESS);
    tokens.push_back(regions[i]->GetLocalToken());
  }
  std::sort(tokens.begin(), tokens.end());
  CHECK(std::adjacent_find(tokens.begin(), tokens.end()) == tokens.end());
  CHECK(device.regions.size() == kMany);
  CHECK(device.mapped_pages >= 2 * kMany);  // each has pins of its own
  for (std::size_t i = 0; i < kMany; ++i) REQUIRE(regions[i]->Deregister(&requests[i]) == ND_PENDING);
  for (std::size_t i = 0; i < kMany; ++i) CHECK(regions[i]->GetOverlappedResult(&requests[i], TRUE) == ND_SUCCESS);
  CHECK(device.regions.empty());
  CHECK(device.mapped_pages == 0);
  for (auto* one : regions) CHECK(one->Release() == 0);
  device.on_time = nullptr;
}

TEST_CASE("with an event queue at every vector there is none to announce an answer: Register waits for it") {
  test::FakeDevice device;
  auto kernel = kmd::KernelDevice::open(device, {.mac = 2, .event_queues = hw::kMsixVectors}).take();
  REQUIRE(device.event_queues.size() == hw::kMsixVectors);
  void* object = nullptr;
  REQUIRE(nd2::open_adapter(kernel->node(), {}, IID_IND2Adapter, &object) == ND_SUCCESS);
  auto* const adapter = static_cast<IND2Adapter*>(object);
  HANDLE file{};
  adapter->CreateOverlappedFile(&file);
  REQUIRE(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, &object) == ND_SUCCESS);
  auto* const region = static_cast<IND2MemoryRegion*>(object);
  std::array<std::uint8_t, 100> memory{};
  OVERLAPPED overlapped{};
  device.admin_hangs = true;
  device.on_time = [&] { device.answer_one_command(); };
  const std::uint64_t wakes = device.wake_count();
  REQUIRE(region->Register(memory.data(), memory.size(), 0, &overlapped) == ND_PENDING);
  CHECK(device.commands.back().opcode == static_cast<std::uint8_t>(hw::AdminOpcode::kCreateMr));
  CHECK(overlapped.Internal == ND_SUCCESS);
  CHECK(device.wake_count() - wakes <= 1);  // of the event that tells the answer
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  CHECK(overlapped.Internal == ND_SUCCESS);
  device.on_time = nullptr;
  device.admin_hangs = false;
  CHECK(region->Release() == 0);
  CHECK(adapter->Release() == 0);
  nd2::close_handle(file);
}
