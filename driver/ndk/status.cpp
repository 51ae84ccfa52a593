#include "driver/ndk/status.hpp"

namespace rnic::ndk {

NTSTATUS control_status(Error error) {
  switch (error) {
    case Error::kInvalidParameter: return STATUS_INVALID_PARAMETER;
    case Error::kAccessViolation: return STATUS_ACCESS_VIOLATION;
    case Error::kOutOfMemory:
    case Error::kOutOfResources: return STATUS_INSUFFICIENT_RESOURCES;
    case Error::kQueueFull: return STATUS_NO_MORE_ENTRIES;
    case Error::kTooManySegments: return STATUS_DATA_OVERRUN;
    case Error::kMessageTooLong:
    case Error::kTooSmall: return STATUS_BUFFER_OVERFLOW;
    case Error::kInvalidState: return STATUS_INVALID_DEVICE_STATE;
    case Error::kBusy: return STATUS_DEVICE_BUSY;
    case Error::kNotSupported:
    case Error::kVersionMismatch: return STATUS_NOT_SUPPORTED;
    case Error::kTimeout: return STATUS_IO_TIMEOUT;
    case Error::kDeviceNotFound:
    case Error::kDeviceFailed: return STATUS_DEVICE_REMOVED;
    case Error::kNotFound:
    case Error::kExists: break;
  }
  return STATUS_UNSUCCESSFUL;
}

NTSTATUS posting_status(Error error) {
  return error == Error::kInvalidState ? STATUS_CONNECTION_INVALID : control_status(error);
}

/// The values are those of NetworkDirect v2 (decisions 11, 12, 18, 19, 53).
NTSTATUS completion_status(hw::CqeStatus status, umd::RequestKind kind) {
  const bool invalidation = kind == umd::RequestKind::kInvalidate || kind == umd::RequestKind::kReadInvalidate;
  switch (status) {
    case hw::CqeStatus::kSuccess: return STATUS_SUCCESS;
    case hw::CqeStatus::kLocLenErr:
      return kind == umd::RequestKind::kReceive ? STATUS_BUFFER_OVERFLOW : STATUS_DATA_OVERRUN;
    case hw::CqeStatus::kLocQpOpErr: return STATUS_INVALID_DEVICE_REQUEST;
    case hw::CqeStatus::kLocProtErr: return invalidation ? STATUS_INVALID_DEVICE_REQUEST : STATUS_ACCESS_VIOLATION;
    case hw::CqeStatus::kWrFlushErr: return STATUS_CANCELLED;
    case hw::CqeStatus::kBadRespErr: return STATUS_REMOTE_RESOURCES;
    case hw::CqeStatus::kRemInvReqErr:
      return kind == umd::RequestKind::kSend ? STATUS_DATA_OVERRUN : STATUS_REMOTE_RESOURCES;
    case hw::CqeStatus::kRemAccessErr: return STATUS_ACCESS_VIOLATION;
    case hw::CqeStatus::kRemOpErr: return STATUS_REMOTE_RESOURCES;
    case hw::CqeStatus::kRetryExcErr:
    case hw::CqeStatus::kRnrRetryExcErr: return STATUS_IO_TIMEOUT;
    case hw::CqeStatus::kFatalErr: break;
  }
  return STATUS_INTERNAL_ERROR;
}

NDK_OPERATION_TYPE operation_type(const umd::Completion& completion) {
  switch (completion.kind) {
    case umd::RequestKind::kSend: return NdkOperationTypeSend;
    case umd::RequestKind::kWrite: return NdkOperationTypeWrite;
    case umd::RequestKind::kRead:
    case umd::RequestKind::kReadInvalidate: return NdkOperationTypeRead;
    case umd::RequestKind::kReceive:
    case umd::RequestKind::kReceiveWrite:
      return completion.with_invalidate ? NdkOperationTypeReceiveAndInvalidate : NdkOperationTypeReceive;
    case umd::RequestKind::kBind: return NdkOperationTypeBind;
    case umd::RequestKind::kInvalidate: return NdkOperationTypeInvalidate;
    case umd::RequestKind::kFastRegister: return NdkOperationTypeFastRegister;
    case umd::RequestKind::kCompareSwap:
    case umd::RequestKind::kFetchAdd: break;  // the interface has no atomics
  }
  return NdkOperationTypeSend;
}

}  // namespace rnic::ndk
