#pragma once

#include "driver/generated/host_interface.hpp"
#include "driver/ndk/ndkpi.h"
#include "driver/result.hpp"
#include "driver/umd/request.hpp"

namespace rnic::ndk {

/// Of a control function.
[[nodiscard]] NTSTATUS control_status(Error error);
/// Of a function that posts.
[[nodiscard]] NTSTATUS posting_status(Error error);
/// Of a completed request.
[[nodiscard]] NTSTATUS completion_status(hw::CqeStatus status, umd::RequestKind kind);
/// The operation behind a completion.
[[nodiscard]] NDK_OPERATION_TYPE operation_type(const umd::Completion& completion);

}  // namespace rnic::ndk
