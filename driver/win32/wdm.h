#pragma once

#include "driver/win32/ntstatus.h"
#include "driver/win32/types.h"

// What consumers of kernel interfaces want of Windows' kernel to wait, measure and have memory. Threads and time are
// those of driver/win32/surroundings.hpp.

/// An event, in memory of its user, who need not give it back when nobody waits for it.
struct KEVENT {
  alignas(16) unsigned char Reserved[112];
};
using PKEVENT = KEVENT*;

enum EVENT_TYPE { NotificationEvent, SynchronizationEvent };  ///< Stays set; releases one waiter
enum KWAIT_REASON { Executive };
using KPROCESSOR_MODE = char;
inline constexpr KPROCESSOR_MODE KernelMode = 0;
inline constexpr LONG IO_NO_INCREMENT = 0;

void KeInitializeEvent(PKEVENT event, EVENT_TYPE type, BOOLEAN set);
/// Whether it was set. `increment` and `wait` are of no account: whoever waits is let go at once.
LONG KeSetEvent(PKEVENT event, LONG increment, BOOLEAN wait);
void KeClearEvent(PKEVENT event);
/// Of a KEVENT. `timeout`: null, or a time from now, in units of 100 ns, negative. STATUS_SUCCESS, STATUS_TIMEOUT;
/// STATUS_NOT_SUPPORTED: a time of the day, or an alertable wait; STATUS_CANCELLED: the thread can wait no more.
NTSTATUS KeWaitForSingleObject(PVOID event, KWAIT_REASON reason, KPROCESSOR_MODE mode, BOOLEAN alertable,
                               LARGE_INTEGER* timeout);

/// The count, and, if asked for, how many are a second.
[[nodiscard]] LARGE_INTEGER KeQueryPerformanceCounter(LARGE_INTEGER* frequency);

using POOL_FLAGS = std::uint64_t;
inline constexpr POOL_FLAGS POOL_FLAG_NON_PAGED = 0x40;
/// Zeros, at a multiple of 16, or, from a page on, of a page. Null: no memory.
[[nodiscard]] PVOID ExAllocatePool2(POOL_FLAGS flags, SIZE_T bytes, ULONG tag);
void ExFreePoolWithTag(PVOID memory, ULONG tag);
