#pragma once

#include <memory>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/win32/completion_port.hpp"
#include "driver/win32/waitable.hpp"

namespace rnic::nd2 {

using win32::close_handle;
using win32::CompletionPort;
using win32::Event;
using win32::find_handle;
using win32::find_handle_as;
using win32::open_handle;
using win32::OverlappedFile;

/// Waits through the device's node: the thread that waits takes the events of all that the process has open there. A
/// device that has failed ends the wait. `node` outlives it.
[[nodiscard]] std::shared_ptr<win32::Waiter> waiter_of(DeviceNode& node);

/// Objects for whose signal threads wait through `node`.
[[nodiscard]] HANDLE create_event(DeviceNode& node, bool manual_reset = true);
[[nodiscard]] HANDLE create_completion_port(DeviceNode& node);

}  // namespace rnic::nd2
