#pragma once

#include "driver/win32/ntstatus.h"

// The status codes of the Network Direct kernel provider interface that no other interface here has, with their
// published values. Global names, because that is what consumers of the interface use.

inline constexpr NTSTATUS STATUS_BUFFER_TOO_SMALL = static_cast<NTSTATUS>(0xC0000023);
inline constexpr NTSTATUS STATUS_INVALID_PARAMETER_MIX = static_cast<NTSTATUS>(0xC0000030);
inline constexpr NTSTATUS STATUS_REMOTE_RESOURCES = static_cast<NTSTATUS>(0xC000013D);
inline constexpr NTSTATUS STATUS_IMPLEMENTATION_LIMIT = static_cast<NTSTATUS>(0xC000042B);
