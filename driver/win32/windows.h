#pragma once

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "driver/win32/interlocked.h"
#include "driver/win32/sal.h"
#include "driver/win32/types.h"
#include "driver/win32/unknwn.h"
#include "driver/win32/winerror.h"

// What programs that use overlapped operations want of Windows, on Linux: handles, events, completion ports, threads,
// time, memory. A function that fails says why by GetLastError. Names of objects and security descriptors are not there:
// whoever gives one gets ERROR_NOT_SUPPORTED. Parameters of wide and narrow names are `const void*`, because null is all
// that there is.
//
// How threads wait and what time it is comes from driver/win32/surroundings.hpp.

#define WINAPI
#define CALLBACK
#define APIENTRY
#define STDMETHODCALLTYPE
#define __cdecl
#define __stdcall
#define __callback
#define __declspec(what)
#define FORCEINLINE inline
#define UNREFERENCED_PARAMETER(parameter) static_cast<void>(parameter)
#define _countof(array) (sizeof(array) / sizeof((array)[0]))
#define CONTAINING_RECORD(address, type, field) \
  reinterpret_cast<type*>(reinterpret_cast<char*>(address) - offsetof(type, field))
#define MAKEWORD(low, high) \
  static_cast<WORD>(static_cast<BYTE>(low) | static_cast<WORD>(static_cast<WORD>(static_cast<BYTE>(high)) << 8))
#define LOBYTE(word) static_cast<BYTE>(word)
#define HIBYTE(word) static_cast<BYTE>(static_cast<WORD>(word) >> 8)

#ifndef NOMINMAX
// Functions, because macros of these names would be the end of <algorithm>.
template <typename T, typename U>
[[nodiscard]] constexpr std::common_type_t<T, U> min(T one, U other) {
  const std::common_type_t<T, U> a = one, b = other;
  return b < a ? b : a;
}
template <typename T, typename U>
[[nodiscard]] constexpr std::common_type_t<T, U> max(T one, U other) {
  const std::common_type_t<T, U> a = one, b = other;
  return a < b ? b : a;
}
#endif

inline constexpr DWORD INFINITE = 0xFFFFFFFF;
inline constexpr DWORD WAIT_OBJECT_0 = 0;
inline constexpr DWORD WAIT_FAILED = 0xFFFFFFFF;
inline constexpr DWORD MAXIMUM_WAIT_OBJECTS = 64;
inline constexpr DWORD STILL_ACTIVE = 0x103;
#define INVALID_HANDLE_VALUE reinterpret_cast<HANDLE>(static_cast<LONG_PTR>(-1))

struct SECURITY_ATTRIBUTES;
using LPSECURITY_ATTRIBUTES = SECURITY_ATTRIBUTES*;

// Errors. Of the calling thread.
[[nodiscard]] DWORD GetLastError();
void SetLastError(DWORD error);
/// The error that stands for a final state of an operation. ERROR_GEN_FAILURE for one that has none.
[[nodiscard]] ULONG RtlNtStatusToDosError(NTSTATUS status);

// Handles and events. ERROR_INVALID_HANDLE, ERROR_NOT_ENOUGH_MEMORY.
BOOL CloseHandle(HANDLE object);
[[nodiscard]] HANDLE CreateEvent(LPSECURITY_ATTRIBUTES security, BOOL manual_reset, BOOL set, const void* name);
BOOL SetEvent(HANDLE event);
BOOL ResetEvent(HANDLE event);

/// Of events and threads; times in ms. WAIT_OBJECT_0, with the place of the first that was signaled; WAIT_TIMEOUT;
/// WAIT_FAILED (ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER: none, too many, or, for all, one twice;
/// ERROR_OPERATION_ABORTED: the thread can wait no more, for its machine has gone).
DWORD WaitForSingleObject(HANDLE object, DWORD milliseconds);
DWORD WaitForMultipleObjects(DWORD count, const HANDLE* objects, BOOL all, DWORD milliseconds);

// Completion ports.
/// A port (INVALID_HANDLE_VALUE for the file, null for the port), a port with a file bound to it (null), or a file bound
/// to a port. Null: ERROR_INVALID_PARAMETER (a port without a file, or the file has one already), ERROR_INVALID_HANDLE.
/// `threads`: how many may work on packets at a time, 0: as many as there are processors. The limit of a port that is
/// there already stays.
HANDLE CreateIoCompletionPort(HANDLE file, HANDLE port, ULONG_PTR key, DWORD threads);
/// FALSE with an overlapped operation: it has failed, and GetLastError says how. FALSE without one: WAIT_TIMEOUT,
/// ERROR_INVALID_HANDLE, ERROR_ABANDONED_WAIT_0 (the port has been closed).
BOOL GetQueuedCompletionStatus(HANDLE port, LPDWORD bytes, PULONG_PTR key, LPOVERLAPPED* overlapped,
                               DWORD milliseconds);
/// Up to `count` at once. Nothing is alertable here. FALSE: as above, and nothing was taken.
BOOL GetQueuedCompletionStatusEx(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG count, PULONG removed,
                                 DWORD milliseconds, BOOL alertable);
BOOL PostQueuedCompletionStatus(HANDLE port, DWORD bytes, ULONG_PTR key, LPOVERLAPPED overlapped);

// Overlapped operations.
/// One turn of a loop that waits for what another thread, or a device, writes into memory: the processor rests for a
/// moment, and in simulated time that moment passes, which it does in no loop without a call. Operations complete
/// meanwhile. _mm_pause is the same.
void YieldProcessor();
/// Of one that has not it is such a turn.
[[nodiscard]] inline bool HasOverlappedIoCompleted(const OVERLAPPED* overlapped) {
  const auto completed = [overlapped] {
    return static_cast<NTSTATUS>(__atomic_load_n(&overlapped->Internal, __ATOMIC_ACQUIRE)) != 0x103;
  };
  if (completed()) return true;
  YieldProcessor();
  return completed();
}
/// Of an operation on `file`, whose event it waits for, if asked to. FALSE: ERROR_IO_INCOMPLETE (not asked to wait),
/// ERROR_INVALID_HANDLE (there is no event to wait for), what the operation has failed with.
BOOL GetOverlappedResult(HANDLE file, LPOVERLAPPED overlapped, LPDWORD bytes, BOOL wait);
/// All operations on `file`, or one. FALSE: ERROR_NOT_FOUND (none pends), ERROR_INVALID_HANDLE.
BOOL CancelIoEx(HANDLE file, LPOVERLAPPED overlapped);

// Threads.
using LPTHREAD_START_ROUTINE = DWORD (*)(LPVOID);
using PTHREAD_START_ROUTINE = LPTHREAD_START_ROUTINE;
/// A thread that runs at once (`flags` 0; nothing else is there: ERROR_NOT_SUPPORTED). The stack is the system's.
[[nodiscard]] HANDLE CreateThread(LPSECURITY_ATTRIBUTES security, SIZE_T stack, LPTHREAD_START_ROUTINE start,
                                  LPVOID argument, DWORD flags, LPDWORD id);
BOOL GetExitCodeThread(HANDLE thread, LPDWORD code);
[[nodiscard]] DWORD GetCurrentThreadId();
[[nodiscard]] DWORD GetCurrentProcessId();
[[nodiscard]] HANDLE GetCurrentThread();
[[nodiscard]] HANDLE GetCurrentProcess();
/// Of the calling thread (GetCurrentThread) alone; the mask before. 0: ERROR_INVALID_PARAMETER (no such processor).
DWORD_PTR SetThreadAffinityMask(HANDLE thread, DWORD_PTR mask);
BOOL SwitchToThread();
void Sleep(DWORD milliseconds);

// Time.
BOOL QueryPerformanceCounter(LARGE_INTEGER* count);
BOOL QueryPerformanceFrequency(LARGE_INTEGER* frequency);
[[nodiscard]] DWORD GetTickCount();
[[nodiscard]] ULONGLONG GetTickCount64();
void GetSystemTimeAsFileTime(FILETIME* time);
/// Of all processors since the start of the system. `kernel` has the idle time in it, as on Windows.
BOOL GetSystemTimes(FILETIME* idle, FILETIME* kernel, FILETIME* user);

// Memory.
inline constexpr DWORD HEAP_ZERO_MEMORY = 0x8;
inline constexpr DWORD MEM_COMMIT = 0x1000;
inline constexpr DWORD MEM_RESERVE = 0x2000;
inline constexpr DWORD MEM_RELEASE = 0x8000;
inline constexpr DWORD MEM_LARGE_PAGES = 0x20000000;
inline constexpr DWORD PAGE_NOACCESS = 0x01;
inline constexpr DWORD PAGE_READONLY = 0x02;
inline constexpr DWORD PAGE_READWRITE = 0x04;
[[nodiscard]] HANDLE GetProcessHeap();
[[nodiscard]] LPVOID HeapAlloc(HANDLE heap, DWORD flags, SIZE_T bytes);
BOOL HeapFree(HANDLE heap, DWORD flags, LPVOID memory);
/// Pages of zeros, reserved and committed at once wherever there is room (MEM_RESERVE, MEM_COMMIT or both). Null:
/// ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED (an address, or something else than that), ERROR_NOT_ENOUGH_MEMORY.
[[nodiscard]] LPVOID VirtualAlloc(LPVOID address, SIZE_T bytes, DWORD type, DWORD protection);
/// All of an allocation (MEM_RELEASE, 0 bytes).
BOOL VirtualFree(LPVOID address, SIZE_T bytes, DWORD type);
BOOL VirtualProtect(LPVOID address, SIZE_T bytes, DWORD protection, PDWORD before);
[[nodiscard]] void* _aligned_malloc(SIZE_T bytes, SIZE_T alignment);
void _aligned_free(void* memory);

#define ZeroMemory(to, bytes) std::memset((to), 0, (bytes))
#define RtlZeroMemory(to, bytes) std::memset((to), 0, (bytes))
#define FillMemory(to, bytes, value) std::memset((to), (value), (bytes))
#define CopyMemory(to, from, bytes) std::memcpy((to), (from), (bytes))
#define RtlCopyMemory(to, from, bytes) std::memcpy((to), (from), (bytes))
#define MoveMemory(to, from, bytes) std::memmove((to), (from), (bytes))

// The system.
struct SYSTEM_INFO {
  DWORD dwPageSize;
  DWORD dwNumberOfProcessors;
  DWORD_PTR dwActiveProcessorMask;
  DWORD dwAllocationGranularity;
};
void GetSystemInfo(SYSTEM_INFO* info);
#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#define _mm_pause YieldProcessor
#endif
