#pragma once

#include "driver/nd2/ndspi.h"

namespace rnic::testbench {

/// Whether IND2CompletionQueue lists this status for requests of this type (ND2_RESULT, remarks). A Bind may also be
/// ND_ACCESS_VIOLATION, as the text above the table has it (decisions 14).
[[nodiscard]] inline bool is_listed(const ND2_RESULT& result) {
  const bool receive = result.RequestType == Nd2RequestTypeReceive;
  const bool bind = result.RequestType == Nd2RequestTypeBind;
  const bool moves_data = !bind && result.RequestType != Nd2RequestTypeInvalidate;
  switch (result.Status) {
    case ND_SUCCESS:
    case ND_CANCELED:
    case ND_INVALID_DEVICE_REQUEST:
    case ND_INTERNAL_ERROR: return true;
    case ND_DATA_OVERRUN: return moves_data && !receive;
    case ND_BUFFER_OVERFLOW: return receive;
    case ND_ACCESS_VIOLATION: return moves_data || bind;
    case ND_IO_TIMEOUT:
    case ND_REMOTE_ERROR: return moves_data;
    default: return false;
  }
}

}  // namespace rnic::testbench
