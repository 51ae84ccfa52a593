#pragma once

#include "driver/nd2/ndspi.h"
#include "driver/result.hpp"
#include "driver/umd/request.hpp"

namespace rnic::nd2 {

/// Status of a control function that failed. `no_memory`: its status for a lack of memory, which is ND_NO_MEMORY for
/// some of the Create family alone (decisions 59).
[[nodiscard]] HRESULT control_status(Error error, HRESULT no_memory = ND_INSUFFICIENT_RESOURCES);
/// Status of a posting function that failed (decisions 8, 15, 32).
[[nodiscard]] HRESULT posting_status(Error error);
/// ND2_RESULT::Status of a completion (decisions 11 to 14, 40).
[[nodiscard]] HRESULT failure_status(hw::CqeStatus status, umd::RequestKind kind);
[[nodiscard]] inline HRESULT completion_status(hw::CqeStatus status, umd::RequestKind kind) {
  return status == hw::CqeStatus::kSuccess ? ND_SUCCESS : failure_status(status, kind);
}

[[nodiscard]] constexpr ND2_REQUEST_TYPE request_type(umd::RequestKind kind) {
  switch (kind) {
    case umd::RequestKind::kSend: return Nd2RequestTypeSend;
    case umd::RequestKind::kWrite: return Nd2RequestTypeWrite;
    case umd::RequestKind::kRead: return Nd2RequestTypeRead;
    case umd::RequestKind::kReceive:
    case umd::RequestKind::kReceiveWrite: return Nd2RequestTypeReceive;
    case umd::RequestKind::kBind: return Nd2RequestTypeBind;
    case umd::RequestKind::kInvalidate: return Nd2RequestTypeInvalidate;
    case umd::RequestKind::kCompareSwap:
    case umd::RequestKind::kFetchAdd:
    case umd::RequestKind::kFastRegister:
    case umd::RequestKind::kReadInvalidate: break;  // ND2 queue pairs have no atomics and no fast registration
  }
  return Nd2RequestTypeSend;
}

}  // namespace rnic::nd2
