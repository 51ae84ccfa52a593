#include "driver/nd2/status.hpp"

namespace rnic::nd2 {

HRESULT control_status(Error error, HRESULT no_memory) {
  switch (error) {
    case Error::kInvalidParameter: return ND_INVALID_PARAMETER;
    case Error::kAccessViolation: return ND_ACCESS_VIOLATION;
    case Error::kOutOfMemory: return no_memory;
    case Error::kOutOfResources: return ND_INSUFFICIENT_RESOURCES;
    case Error::kQueueFull: return ND_NO_MORE_ENTRIES;
    case Error::kTooManySegments: return ND_DATA_OVERRUN;
    case Error::kMessageTooLong: return ND_BUFFER_OVERFLOW;
    case Error::kInvalidState: return ND_INVALID_DEVICE_STATE;
    case Error::kBusy: return ND_DEVICE_BUSY;
    case Error::kTooSmall: return ND_BUFFER_OVERFLOW;
    case Error::kNotFound: return ND_INVALID_HANDLE;
    case Error::kExists: return ND_INTERNAL_ERROR;
    case Error::kNotSupported: return ND_NOT_SUPPORTED;
    case Error::kTimeout:
    case Error::kDeviceNotFound:
    case Error::kDeviceFailed: return ND_DEVICE_REMOVED;
    case Error::kVersionMismatch: return ND_NOT_SUPPORTED;
  }
  return ND_INTERNAL_ERROR;
}

HRESULT posting_status(Error error) {
  return error == Error::kInvalidState ? ND_CONNECTION_INVALID : control_status(error);
}

HRESULT failure_status(hw::CqeStatus status, umd::RequestKind kind) {
  switch (status) {
    case hw::CqeStatus::kSuccess: return ND_SUCCESS;
    case hw::CqeStatus::kLocLenErr: return kind == umd::RequestKind::kReceive ? ND_BUFFER_OVERFLOW : ND_DATA_OVERRUN;
    case hw::CqeStatus::kLocQpOpErr: return ND_INVALID_DEVICE_REQUEST;
    case hw::CqeStatus::kLocProtErr:  // decisions 53
      return kind == umd::RequestKind::kInvalidate ? ND_INVALID_DEVICE_REQUEST : ND_ACCESS_VIOLATION;
    case hw::CqeStatus::kWrFlushErr: return ND_CANCELED;
    case hw::CqeStatus::kBadRespErr: return ND_REMOTE_ERROR;
    case hw::CqeStatus::kRemInvReqErr: return kind == umd::RequestKind::kSend ? ND_DATA_OVERRUN : ND_REMOTE_ERROR;
    case hw::CqeStatus::kRemAccessErr: return ND_ACCESS_VIOLATION;
    case hw::CqeStatus::kRemOpErr: return ND_REMOTE_ERROR;
    case hw::CqeStatus::kRetryExcErr:
    case hw::CqeStatus::kRnrRetryExcErr: return ND_IO_TIMEOUT;
    case hw::CqeStatus::kFatalErr: return ND_INTERNAL_ERROR;
  }
  return ND_INTERNAL_ERROR;
}

}  // namespace rnic::nd2
