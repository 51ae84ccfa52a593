#include <catch2/catch.hpp>

#include <arpa/inet.h>

#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::Nd2Fixture;

namespace {

struct RegionFixture : Nd2Fixture {
  RegionFixture() : region(make_region()) {}
  ~RegionFixture() { region->Release(); }
  HRESULT enter(const void* buffer, SIZE_T length, ULONG flags = 0) {
    return region->Register(buffer, length, flags, &overlapped);
  }
  const hw::AdminCreateMr& hardware() { return device.regions.at(region->GetLocalToken()); }
  IND2MemoryRegion* region;
  std::array<std::uint8_t, 8192> memory{};
};

}  // namespace

TEST_CASE_METHOD(RegionFixture, "registering pends and completes through the event") {
  CHECK(region->GetLocalToken() == 0);
  CHECK(region->GetRemoteToken() == 0);
  CHECK_FALSE(event_is_set());
  REQUIRE(enter(memory.data(), memory.size(), ND_MR_FLAG_ALLOW_REMOTE_READ) == ND_PENDING);
  CHECK(event_is_set());
  CHECK(region->GetOverlappedResult(&overlapped, FALSE) == ND_SUCCESS);
  CHECK(region->GetOverlappedResult(&overlapped, TRUE) == ND_SUCCESS);
  CHECK(region->GetLocalToken() != 0);
  CHECK(region->GetRemoteToken() == htonl(region->GetLocalToken()));
  CHECK(device.regions.contains(region->GetLocalToken()));
  CHECK(enter(memory.data(), memory.size()) == ND_INVALID_DEVICE_STATE);
  const UINT32 old = region->GetLocalToken();
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  CHECK(status() == ND_SUCCESS);
  CHECK(event_is_set());
  CHECK(region->GetLocalToken() == 0);
  CHECK(device.mapped_pages == 0);
  CHECK(region->Deregister(&overlapped) == ND_INVALID_DEVICE_STATE);
  REQUIRE(enter(memory.data(), memory.size()) == ND_PENDING);
  CHECK(region->GetLocalToken() != old);
}

TEST_CASE_METHOD(RegionFixture, "rights") {
  const auto rights = [&](ULONG flags) {
    REQUIRE(enter(memory.data(), 100, flags) == ND_PENDING);
    const auto body = hardware();
    REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
    return std::array<int, 4>{body.local_write, body.remote_read, body.remote_write, body.read_sink};
  };
  using Rights = std::array<int, 4>;
  CHECK(rights(0) == Rights{0, 0, 0, 0});
  CHECK(rights(ND_MR_FLAG_ALLOW_LOCAL_WRITE) == Rights{1, 0, 0, 0});
  CHECK(rights(ND_MR_FLAG_ALLOW_REMOTE_READ) == Rights{0, 1, 0, 0});
  CHECK(rights(ND_MR_FLAG_ALLOW_REMOTE_WRITE) == Rights{1, 0, 1, 0});
  CHECK(rights(4) == Rights{1, 0, 1, 0});                          // the remote bit alone
  CHECK(rights(ND_MR_FLAG_RDMA_READ_SINK) == Rights{0, 0, 0, 1});  // decisions 57
  CHECK(rights(ND_MR_FLAG_RDMA_READ_SINK | ND_MR_FLAG_ALLOW_LOCAL_WRITE) == Rights{1, 0, 0, 1});
  CHECK(rights(ND_MR_FLAG_DO_NOT_SECURE_VM) == Rights{0, 0, 0, 0});
}

TEST_CASE_METHOD(RegionFixture, "errors are immediate, complete nothing, and leave the region empty") {
  nd2::find_handle_as<nd2::Event>(event)->reset();
  CHECK(enter(nullptr, 0) == ND_INVALID_PARAMETER);
  CHECK(enter(memory.data(), 0) == ND_INVALID_BUFFER_SIZE);
  CHECK(enter(nullptr, 10) == ND_ACCESS_VIOLATION);
  CHECK(enter(memory.data(), (1ULL << 47) + 1) == ND_INVALID_PARAMETER);
  CHECK(enter(reinterpret_cast<void*>(~0ULL - 5), 10) == ND_ACCESS_VIOLATION);
  CHECK(enter(memory.data(), 10, 0x10) == ND_INVALID_PARAMETER_3);
  device.unmapped = memory.data();
  CHECK(enter(memory.data(), 10) == ND_ACCESS_VIOLATION);
  device.unmapped = nullptr;
  device.read_only = memory.data();
  CHECK(enter(memory.data(), 10, ND_MR_FLAG_ALLOW_LOCAL_WRITE) == ND_ACCESS_VIOLATION);
  CHECK(region->Register(memory.data(), 10, 0, nullptr) == ND_INVALID_PARAMETER);
  OVERLAPPED bad{};
  bad.hEvent = file;
  CHECK(region->Register(memory.data(), 10, 0, &bad) == ND_INVALID_HANDLE);
  CHECK_FALSE(event_is_set());
  CHECK(device.regions.empty());
  CHECK(enter(memory.data(), 10) == ND_PENDING);
}

TEST_CASE_METHOD(RegionFixture, "a region with bound windows stays") {
  REQUIRE(enter(memory.data(), 10) == ND_PENDING);
  const UINT32 token = region->GetLocalToken();
  device.next_status.push_back(hw::AdminStatus::kInUse);
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  CHECK(status() == ND_DEVICE_BUSY);
  CHECK(event_is_set());
  CHECK(region->GetLocalToken() == token);
  CHECK(region->Deregister(&overlapped) == ND_PENDING);
}

TEST_CASE_METHOD(RegionFixture,
                 "a region released with bound windows belongs to the kernel until the last of them is unbound") {
  void* object = nullptr;
  IND2MemoryWindow* windows[2];
  for (auto& window : windows) {
    REQUIRE(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
    window = static_cast<IND2MemoryWindow*>(object);
  }
  REQUIRE(enter(memory.data(), memory.size()) == ND_PENDING);
  const UINT32 key = region->GetLocalToken();
  for (auto* window : windows) device.bound[ntohl(window->GetRemoteToken()) >> 8] = key >> 8;
  region->Release();
  CHECK(device.regions.contains(key));
  CHECK(device.mapped_pages != 0);
  SECTION("by the release of the windows") {
    windows[0]->Release();
    CHECK(device.regions.contains(key));
    windows[1]->Release();
    CHECK_FALSE(device.regions.contains(key));
    CHECK(device.mapped_pages == 0);
  }
  SECTION("by the end of the queue pair on which they were bound") {
    open_pair(true);
    device.bound.clear();
    CHECK(pair->Flush() == ND_SUCCESS);
    CHECK_FALSE(device.regions.contains(key));
    CHECK(device.mapped_pages == 0);
    for (auto* window : windows) window->Release();
  }
  SECTION("by an invalidation, when memory is registered next") {
    device.bound.clear();
    auto* const another = make_region();
    REQUIRE(another->Register(memory.data(), 1, 0, &overlapped) == ND_PENDING);
    CHECK(device.regions.size() == 1);
    CHECK(device.mapped_pages == 1);
    another->Release();
    for (auto* window : windows) window->Release();
  }
  region = make_region();
}

TEST_CASE_METHOD(RegionFixture, "the port gets one packet a request, unless bit 0 of the event says no") {
  auto port_handle = nd2::create_completion_port(kernel->node());
  auto port = nd2::find_handle_as<nd2::CompletionPort>(port_handle);
  auto overlapped_file = nd2::find_handle_as<nd2::OverlappedFile>(file);
  REQUIRE(overlapped_file->bind(port, 99));
  CHECK_FALSE(overlapped_file->bind(port, 98));
  REQUIRE(enter(memory.data(), 10) == ND_PENDING);
  auto packet = port->take();
  REQUIRE(packet.has_value());
  CHECK(packet->key == 99);
  CHECK(packet->overlapped == &overlapped);
  CHECK(packet->status == ND_SUCCESS);
  CHECK_FALSE(port->take(1000).has_value());
  overlapped.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<std::uintptr_t>(event) | 1);
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  CHECK_FALSE(port->try_take().has_value());
  CHECK(event_is_set());
  CHECK(nd2::close_handle(port_handle));
  CHECK_FALSE(nd2::close_handle(port_handle));
}
