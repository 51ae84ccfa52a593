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
[[nodiscard]] HRESULT completion_status(hw::CqeStatus status, umd::RequestKind kind);
[[nodiscard]] ND2_REQUEST_TYPE request_type(umd::RequestKind kind);

}  // namespace rnic::nd2
