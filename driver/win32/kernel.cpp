#include <cstdlib>
#include <cstring>
#include <new>

#include "driver/win32/surroundings.hpp"
#include "driver/win32/waitable.hpp"
#include "driver/win32/wdm.h"

namespace {

using rnic::win32::Event;

constexpr SIZE_T kPage = 4096, kUnit = 16;
constexpr LONGLONG kCountsPerSecond = 1'000'000'000;

static_assert(sizeof(Event) <= sizeof(KEVENT) && alignof(Event) <= alignof(KEVENT));

Event& event_of(PVOID event) { return *std::launder(reinterpret_cast<Event*>(static_cast<KEVENT*>(event)->Reserved)); }

}  // namespace

void KeInitializeEvent(PKEVENT event, EVENT_TYPE type, BOOLEAN set) {
  new (event->Reserved) Event(type == NotificationEvent, set != 0);
}

LONG KeSetEvent(PKEVENT event, LONG, BOOLEAN) { return event_of(event).set_was() ? 1 : 0; }

void KeClearEvent(PKEVENT event) { event_of(event).reset(); }

NTSTATUS KeWaitForSingleObject(PVOID event, KWAIT_REASON, KPROCESSOR_MODE, BOOLEAN alertable, LARGE_INTEGER* timeout) {
  constexpr std::uint64_t kUnitNs = 100;
  if (alertable != 0 || (timeout != nullptr && timeout->QuadPart > 0)) return STATUS_NOT_SUPPORTED;
  const std::uint64_t begun = rnic::win32::surroundings().now_ns();
  const std::uint64_t limit =
      timeout == nullptr ? rnic::win32::kForever : (0 - static_cast<std::uint64_t>(timeout->QuadPart)) * kUnitNs;
  if (event_of(event).wait(limit)) return STATUS_SUCCESS;
  return rnic::win32::surroundings().now_ns() - begun >= limit ? STATUS_TIMEOUT : STATUS_CANCELLED;
}

LARGE_INTEGER KeQueryPerformanceCounter(LARGE_INTEGER* frequency) {
  if (frequency != nullptr) frequency->QuadPart = kCountsPerSecond;
  LARGE_INTEGER count{};
  count.QuadPart = static_cast<LONGLONG>(rnic::win32::surroundings().now_ns());
  return count;
}

PVOID ExAllocatePool2(POOL_FLAGS, SIZE_T bytes, ULONG) {
  const SIZE_T unit = bytes >= kPage ? kPage : kUnit;
  if (bytes == 0 || bytes > ~SIZE_T{0} - unit) return nullptr;
  void* const memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}

void ExFreePoolWithTag(PVOID memory, ULONG) { std::free(memory); }
