#include <algorithm>
#include <thread>

#include "driver/win32/completion_port.hpp"
#include "driver/win32/last_error.hpp"
#include "driver/win32/ntstatus.h"
#include "driver/win32/waitable.hpp"

using namespace rnic::win32;

namespace {

HANDLE bind_file(HANDLE file, const std::shared_ptr<CompletionPort>& port, ULONG_PTR key, HANDLE result) {
  const auto object = find_handle_as<OverlappedFile>(file);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE, HANDLE{});
  return object->bind(port, key) ? result : fail(ERROR_INVALID_PARAMETER, HANDLE{});
}

HANDLE create_port(HANDLE file, ULONG_PTR key, DWORD threads) {
  const unsigned processors = std::max(std::thread::hardware_concurrency(), 1U);
  const auto port = std::make_shared<CompletionPort>(nullptr, threads != 0 ? threads : processors);
  const HANDLE handle = open_handle(port);
  if (file == INVALID_HANDLE_VALUE || bind_file(file, port, key, handle) != nullptr) return handle;
  close_handle(handle);
  return nullptr;
}

NTSTATUS status_of(const OVERLAPPED& overlapped) {
  return static_cast<NTSTATUS>(__atomic_load_n(&overlapped.Internal, __ATOMIC_ACQUIRE));
}

/// Why a port gave nothing.
DWORD error_of(Waited waited) {
  switch (waited) {
    case Waited::kDone: return ERROR_ABANDONED_WAIT_0;
    case Waited::kTimeout: return WAIT_TIMEOUT;
    case Waited::kGone: break;
  }
  return ERROR_OPERATION_ABORTED;
}

}  // namespace

HANDLE CreateIoCompletionPort(HANDLE file, HANDLE port, ULONG_PTR key, DWORD threads) {
  return guarded(HANDLE{}, [&] {
    if (port == nullptr) return create_port(file, key, threads);
    if (file == INVALID_HANDLE_VALUE) return fail(ERROR_INVALID_PARAMETER, HANDLE{});
    const auto object = find_handle_as<CompletionPort>(port);
    if (object == nullptr) return fail(ERROR_INVALID_HANDLE, HANDLE{});
    return bind_file(file, object, key, port);
  });
}

BOOL GetQueuedCompletionStatus(HANDLE port, LPDWORD bytes, PULONG_PTR key, LPOVERLAPPED* overlapped,
                               DWORD milliseconds) {
  if (bytes == nullptr || key == nullptr || overlapped == nullptr) return fail(ERROR_INVALID_PARAMETER);
  *overlapped = nullptr;
  const auto object = find_handle_as<CompletionPort>(port);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE);
  return guarded(FALSE, [&] {
    CompletionPort::Packets taken;
    const Waited waited = object->take_some(1, taken, nanoseconds(milliseconds));
    if (taken.empty()) return fail(error_of(waited));
    const auto& packet = taken.front();
    *bytes = static_cast<DWORD>(packet.bytes);
    *key = packet.key;
    *overlapped = packet.overlapped;
    return NT_SUCCESS(packet.status) ? TRUE : fail(RtlNtStatusToDosError(packet.status));
  });
}

BOOL GetQueuedCompletionStatusEx(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG count, PULONG removed,
                                 DWORD milliseconds, BOOL) {
  if (entries == nullptr || removed == nullptr || count == 0) return fail(ERROR_INVALID_PARAMETER);
  *removed = 0;
  const auto object = find_handle_as<CompletionPort>(port);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE);
  return guarded(FALSE, [&] {
    CompletionPort::Packets packets;
    const Waited waited = object->take_some(count, packets, nanoseconds(milliseconds));
    if (packets.empty()) return fail(error_of(waited));
    for (const auto& packet : packets)
      entries[(*removed)++] = {.lpCompletionKey = packet.key,
                               .lpOverlapped = packet.overlapped,
                               .Internal = static_cast<std::uint32_t>(packet.status),
                               .dwNumberOfBytesTransferred = static_cast<DWORD>(packet.bytes)};
    return TRUE;
  });
}

BOOL PostQueuedCompletionStatus(HANDLE port, DWORD bytes, ULONG_PTR key, LPOVERLAPPED overlapped) {
  const auto object = find_handle_as<CompletionPort>(port);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE);
  return guarded(FALSE, [&] {
    object->post({.key = key, .overlapped = overlapped, .status = STATUS_SUCCESS, .bytes = bytes});
    return TRUE;
  });
}

BOOL GetOverlappedResult(HANDLE, LPOVERLAPPED overlapped, LPDWORD bytes, BOOL wait) {
  if (overlapped == nullptr || bytes == nullptr) return fail(ERROR_INVALID_PARAMETER);
  if (!HasOverlappedIoCompleted(overlapped)) {
    if (wait == FALSE) return fail(ERROR_IO_INCOMPLETE);
    if (find_handle_as<Event>(overlapped->hEvent) == nullptr) return fail(ERROR_INVALID_HANDLE);
    if (WaitForSingleObject(overlapped->hEvent, INFINITE) == WAIT_FAILED) return FALSE;
  }
  *bytes = static_cast<DWORD>(overlapped->InternalHigh);
  const NTSTATUS status = status_of(*overlapped);
  return NT_SUCCESS(status) ? TRUE : fail(RtlNtStatusToDosError(status));
}

BOOL CancelIoEx(HANDLE file, LPOVERLAPPED overlapped) {
  const auto object = find_handle_as<OverlappedFile>(file);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE);
  return guarded(FALSE, [&] { return object->cancel(overlapped) ? TRUE : fail(ERROR_NOT_FOUND); });
}
