#pragma once

#include "driver/nd2/ndtypes.h"

// Status codes of NetworkDirect: severity in bits 31:30 (0 success, 1 information, 2 warning, 3 error),
// facility 0. Each equals the NTSTATUS of the same name. ND_TIMEOUT and ND_PENDING are successes.

inline constexpr HRESULT ND_SUCCESS = static_cast<HRESULT>(0x00000000);
inline constexpr HRESULT ND_TIMEOUT = static_cast<HRESULT>(0x00000102);
inline constexpr HRESULT ND_PENDING = static_cast<HRESULT>(0x00000103);
inline constexpr HRESULT ND_BUFFER_OVERFLOW = static_cast<HRESULT>(0x80000005);
inline constexpr HRESULT ND_DEVICE_BUSY = static_cast<HRESULT>(0x80000011);
inline constexpr HRESULT ND_NO_MORE_ENTRIES = static_cast<HRESULT>(0x8000001A);
inline constexpr HRESULT ND_UNSUCCESSFUL = static_cast<HRESULT>(0xC0000001);
inline constexpr HRESULT ND_ACCESS_VIOLATION = static_cast<HRESULT>(0xC0000005);
inline constexpr HRESULT ND_INVALID_HANDLE = static_cast<HRESULT>(0xC0000008);
inline constexpr HRESULT ND_INVALID_PARAMETER = static_cast<HRESULT>(0xC000000D);
inline constexpr HRESULT ND_INVALID_DEVICE_REQUEST = static_cast<HRESULT>(0xC0000010);
inline constexpr HRESULT ND_NO_MEMORY = static_cast<HRESULT>(0xC0000017);
inline constexpr HRESULT ND_INVALID_PARAMETER_MIX = static_cast<HRESULT>(0xC0000030);
inline constexpr HRESULT ND_DATA_OVERRUN = static_cast<HRESULT>(0xC000003C);
inline constexpr HRESULT ND_SHARING_VIOLATION = static_cast<HRESULT>(0xC0000043);
inline constexpr HRESULT ND_INSUFFICIENT_RESOURCES = static_cast<HRESULT>(0xC000009A);
inline constexpr HRESULT ND_DEVICE_NOT_READY = static_cast<HRESULT>(0xC00000A3);
inline constexpr HRESULT ND_IO_TIMEOUT = static_cast<HRESULT>(0xC00000B5);
inline constexpr HRESULT ND_NOT_SUPPORTED = static_cast<HRESULT>(0xC00000BB);
inline constexpr HRESULT ND_INTERNAL_ERROR = static_cast<HRESULT>(0xC00000E5);
inline constexpr HRESULT ND_INVALID_PARAMETER_1 = static_cast<HRESULT>(0xC00000EF);
inline constexpr HRESULT ND_INVALID_PARAMETER_2 = static_cast<HRESULT>(0xC00000F0);
inline constexpr HRESULT ND_INVALID_PARAMETER_3 = static_cast<HRESULT>(0xC00000F1);
inline constexpr HRESULT ND_INVALID_PARAMETER_4 = static_cast<HRESULT>(0xC00000F2);
inline constexpr HRESULT ND_INVALID_PARAMETER_5 = static_cast<HRESULT>(0xC00000F3);
inline constexpr HRESULT ND_INVALID_PARAMETER_6 = static_cast<HRESULT>(0xC00000F4);
inline constexpr HRESULT ND_INVALID_PARAMETER_7 = static_cast<HRESULT>(0xC00000F5);
inline constexpr HRESULT ND_INVALID_PARAMETER_8 = static_cast<HRESULT>(0xC00000F6);
inline constexpr HRESULT ND_INVALID_PARAMETER_9 = static_cast<HRESULT>(0xC00000F7);
inline constexpr HRESULT ND_INVALID_PARAMETER_10 = static_cast<HRESULT>(0xC00000F8);
inline constexpr HRESULT ND_CANCELED = static_cast<HRESULT>(0xC0000120);
inline constexpr HRESULT ND_REMOTE_ERROR = static_cast<HRESULT>(0xC000013D);
inline constexpr HRESULT ND_INVALID_ADDRESS = static_cast<HRESULT>(0xC0000141);
inline constexpr HRESULT ND_INVALID_DEVICE_STATE = static_cast<HRESULT>(0xC0000184);
inline constexpr HRESULT ND_INVALID_BUFFER_SIZE = static_cast<HRESULT>(0xC0000206);
inline constexpr HRESULT ND_TOO_MANY_ADDRESSES = static_cast<HRESULT>(0xC0000209);
inline constexpr HRESULT ND_ADDRESS_ALREADY_EXISTS = static_cast<HRESULT>(0xC000020A);
inline constexpr HRESULT ND_CONNECTION_REFUSED = static_cast<HRESULT>(0xC0000236);
inline constexpr HRESULT ND_CONNECTION_INVALID = static_cast<HRESULT>(0xC000023A);
inline constexpr HRESULT ND_CONNECTION_ACTIVE = static_cast<HRESULT>(0xC000023B);
inline constexpr HRESULT ND_NETWORK_UNREACHABLE = static_cast<HRESULT>(0xC000023C);
inline constexpr HRESULT ND_HOST_UNREACHABLE = static_cast<HRESULT>(0xC000023D);
inline constexpr HRESULT ND_CONNECTION_ABORTED = static_cast<HRESULT>(0xC0000241);
inline constexpr HRESULT ND_DEVICE_REMOVED = static_cast<HRESULT>(0xC00002B6);

// Names of version 1 of the interface.
inline constexpr HRESULT ND_LOCAL_LENGTH = ND_DATA_OVERRUN;
inline constexpr HRESULT ND_INVALIDATION_ERROR = ND_INVALID_DEVICE_REQUEST;
