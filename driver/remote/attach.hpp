#pragma once

#include <memory>
#include <string>

#include "driver/kernel_calls/kernel_port.hpp"

namespace rnic::remote {

/// Connects to a host of a machine that is a process of its own (`rnic serve`) by the host's socket, and gives the
/// device of that host as this process finds it (docs/server.md). Every client that it opens belongs to this process,
/// and ends with it, however it ends.
///
/// When the machine ends, calls answer kDeviceFailed, but for calls::Destroy, which succeeds; Machine::removed is true,
/// and every wait is over. The node is of the process that attached: for a child of fork the machine has ended, and
/// what it does with what it inherited reaches neither machine nor parent. It attaches anew.
///
/// Errors: kDeviceNotFound (nobody listens at `socket`, or the machine does not want this process), kAccessViolation
/// (what listens there is not this user's alone, see connect_to_machine), kVersionMismatch (a machine of another
/// version), kOutOfResources (no descriptor is free), kOutOfMemory.
[[nodiscard]] Result<std::shared_ptr<DeviceNode>> attach(const std::string& socket);

}  // namespace rnic::remote
