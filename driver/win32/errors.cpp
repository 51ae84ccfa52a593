#include "driver/win32/last_error.hpp"
#include "driver/win32/ntstatus.h"
#include "driver/win32/surroundings.hpp"

namespace {

thread_local DWORD last_error = ERROR_SUCCESS;

}  // namespace

DWORD GetLastError() { return last_error; }

void SetLastError(DWORD error) { last_error = error; }

ULONG RtlNtStatusToDosError(NTSTATUS status) {
  switch (status) {
    case STATUS_SUCCESS: return ERROR_SUCCESS;
    case STATUS_TIMEOUT: return WAIT_TIMEOUT;
    case STATUS_PENDING: return ERROR_IO_PENDING;
    case STATUS_BUFFER_OVERFLOW: return ERROR_MORE_DATA;
    case STATUS_DEVICE_BUSY: return ERROR_BUSY;
    case STATUS_ACCESS_VIOLATION: return ERROR_NOACCESS;
    case STATUS_INVALID_HANDLE: return ERROR_INVALID_HANDLE;
    case STATUS_INVALID_PARAMETER: return ERROR_INVALID_PARAMETER;
    case STATUS_INVALID_DEVICE_REQUEST: return ERROR_INVALID_FUNCTION;
    case STATUS_NO_MEMORY: return ERROR_NOT_ENOUGH_MEMORY;
    case STATUS_INSUFFICIENT_RESOURCES: return ERROR_NO_SYSTEM_RESOURCES;
    case STATUS_DEVICE_NOT_READY: return ERROR_NOT_READY;
    case STATUS_IO_TIMEOUT: return ERROR_SEM_TIMEOUT;
    case STATUS_NOT_SUPPORTED: return ERROR_NOT_SUPPORTED;
    case STATUS_CANCELLED: return ERROR_OPERATION_ABORTED;
    case STATUS_CONNECTION_REFUSED: return ERROR_CONNECTION_REFUSED;
    case STATUS_CONNECTION_INVALID: return ERROR_CONNECTION_INVALID;
    case STATUS_CONNECTION_ACTIVE: return ERROR_CONNECTION_ACTIVE;
    case STATUS_NETWORK_UNREACHABLE: return ERROR_NETWORK_UNREACHABLE;
    case STATUS_HOST_UNREACHABLE: return ERROR_HOST_UNREACHABLE;
    case STATUS_CONNECTION_ABORTED: return ERROR_CONNECTION_ABORTED;
    case STATUS_DEVICE_REMOVED: return ERROR_DEVICE_REMOVED;
    default: return ERROR_GEN_FAILURE;
  }
}

std::uint64_t rnic::win32::nanoseconds(DWORD milliseconds) {
  constexpr std::uint64_t kNanosecondsPerMillisecond = 1'000'000;
  return milliseconds == INFINITE ? kForever : milliseconds * kNanosecondsPerMillisecond;
}
