// What consumers of kernel interfaces have of Windows' kernel: wdm.h.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "driver/win32/wdm.h"

namespace {

constexpr ULONG kTag = 0x74736554;

LARGE_INTEGER after_us(LONGLONG us) {
  LARGE_INTEGER time{};
  time.QuadPart = -10 * us;
  return time;
}

NTSTATUS wait(KEVENT& event, LARGE_INTEGER time) {
  return KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &time);
}

}  // namespace

TEST_CASE("an event of the kernel is set, taken and cleared") {
  KEVENT event;
  KeInitializeEvent(&event, SynchronizationEvent, TRUE);
  CHECK(wait(event, after_us(0)) == STATUS_SUCCESS);
  CHECK(wait(event, after_us(0)) == STATUS_TIMEOUT);
  CHECK(KeSetEvent(&event, IO_NO_INCREMENT, FALSE) == 0);
  CHECK(KeSetEvent(&event, IO_NO_INCREMENT, FALSE) == 1);
  KeClearEvent(&event);
  CHECK(wait(event, after_us(100)) == STATUS_TIMEOUT);
  KeInitializeEvent(&event, NotificationEvent, FALSE);
  CHECK(KeSetEvent(&event, IO_NO_INCREMENT, FALSE) == 0);
  CHECK(wait(event, after_us(0)) == STATUS_SUCCESS);
  CHECK(wait(event, after_us(0)) == STATUS_SUCCESS);
}

TEST_CASE("who waits for an event of the kernel without a limit is let go by another thread") {
  KEVENT event;
  KeInitializeEvent(&event, SynchronizationEvent, FALSE);
  std::thread other([&] { KeSetEvent(&event, IO_NO_INCREMENT, FALSE); });
  CHECK(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, nullptr) == STATUS_SUCCESS);
  other.join();
}

TEST_CASE("waits of the kernel that are alertable, or end at a time of the day, are not there") {
  KEVENT event;
  KeInitializeEvent(&event, SynchronizationEvent, TRUE);
  LARGE_INTEGER day{};
  day.QuadPart = 1;
  CHECK(wait(event, day) == STATUS_NOT_SUPPORTED);
  CHECK(KeWaitForSingleObject(&event, Executive, KernelMode, TRUE, nullptr) == STATUS_NOT_SUPPORTED);
}

TEST_CASE("the kernel's counter goes on, in units that it tells") {
  LARGE_INTEGER frequency{};
  const auto begin = KeQueryPerformanceCounter(&frequency);
  CHECK(frequency.QuadPart == 1'000'000'000);
  KEVENT event;
  KeInitializeEvent(&event, SynchronizationEvent, FALSE);
  CHECK(wait(event, after_us(1'000)) == STATUS_TIMEOUT);
  CHECK(KeQueryPerformanceCounter(nullptr).QuadPart - begin.QuadPart >= 1'000'000);
}

TEST_CASE("memory of the kernel's pool is zero, and of whole pages from a page on") {
  for (const SIZE_T bytes : {SIZE_T{1}, SIZE_T{100}, SIZE_T{4096}, SIZE_T{9000}}) {
    auto* const memory = static_cast<unsigned char*>(ExAllocatePool2(POOL_FLAG_NON_PAGED, bytes, kTag));
    REQUIRE(memory != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % (bytes >= 4096 ? 4096 : 16) == 0);
    CHECK(std::all_of(memory, memory + bytes, [](unsigned char byte) { return byte == 0; }));
    ExFreePoolWithTag(memory, kTag);
  }
  CHECK(ExAllocatePool2(POOL_FLAG_NON_PAGED, 0, kTag) == nullptr);
  CHECK(ExAllocatePool2(POOL_FLAG_NON_PAGED, ~SIZE_T{0}, kTag) == nullptr);
}
