#pragma once

#include <cstdint>

// The status codes of the Network Direct kernel provider interface, with their published values. Global names, because
// that is what consumers of the interface use.

using NTSTATUS = std::int32_t;

[[nodiscard]] constexpr bool NT_SUCCESS(NTSTATUS status) { return status >= 0; }

inline constexpr NTSTATUS STATUS_SUCCESS = 0;
inline constexpr NTSTATUS STATUS_PENDING = 0x103;
inline constexpr NTSTATUS STATUS_BUFFER_OVERFLOW = static_cast<NTSTATUS>(0x80000005);
inline constexpr NTSTATUS STATUS_NO_MORE_ENTRIES = static_cast<NTSTATUS>(0x8000001A);
inline constexpr NTSTATUS STATUS_UNSUCCESSFUL = static_cast<NTSTATUS>(0xC0000001);
inline constexpr NTSTATUS STATUS_ACCESS_VIOLATION = static_cast<NTSTATUS>(0xC0000005);
inline constexpr NTSTATUS STATUS_INVALID_PARAMETER = static_cast<NTSTATUS>(0xC000000D);
inline constexpr NTSTATUS STATUS_INVALID_DEVICE_REQUEST = static_cast<NTSTATUS>(0xC0000010);
inline constexpr NTSTATUS STATUS_BUFFER_TOO_SMALL = static_cast<NTSTATUS>(0xC0000023);
inline constexpr NTSTATUS STATUS_INVALID_PARAMETER_MIX = static_cast<NTSTATUS>(0xC0000030);
inline constexpr NTSTATUS STATUS_DATA_OVERRUN = static_cast<NTSTATUS>(0xC000003C);
inline constexpr NTSTATUS STATUS_SHARING_VIOLATION = static_cast<NTSTATUS>(0xC0000043);
inline constexpr NTSTATUS STATUS_INSUFFICIENT_RESOURCES = static_cast<NTSTATUS>(0xC000009A);
inline constexpr NTSTATUS STATUS_IO_TIMEOUT = static_cast<NTSTATUS>(0xC00000B5);
inline constexpr NTSTATUS STATUS_NOT_SUPPORTED = static_cast<NTSTATUS>(0xC00000BB);
inline constexpr NTSTATUS STATUS_INTERNAL_ERROR = static_cast<NTSTATUS>(0xC00000E5);
inline constexpr NTSTATUS STATUS_CANCELLED = static_cast<NTSTATUS>(0xC0000120);
inline constexpr NTSTATUS STATUS_REMOTE_RESOURCES = static_cast<NTSTATUS>(0xC000013D);
inline constexpr NTSTATUS STATUS_INVALID_ADDRESS = static_cast<NTSTATUS>(0xC0000141);
inline constexpr NTSTATUS STATUS_INVALID_DEVICE_STATE = static_cast<NTSTATUS>(0xC0000184);
inline constexpr NTSTATUS STATUS_TOO_MANY_ADDRESSES = static_cast<NTSTATUS>(0xC0000209);
inline constexpr NTSTATUS STATUS_ADDRESS_ALREADY_EXISTS = static_cast<NTSTATUS>(0xC000020A);
inline constexpr NTSTATUS STATUS_CONNECTION_REFUSED = static_cast<NTSTATUS>(0xC0000236);
inline constexpr NTSTATUS STATUS_CONNECTION_INVALID = static_cast<NTSTATUS>(0xC000023A);
inline constexpr NTSTATUS STATUS_NETWORK_UNREACHABLE = static_cast<NTSTATUS>(0xC000023C);
inline constexpr NTSTATUS STATUS_HOST_UNREACHABLE = static_cast<NTSTATUS>(0xC000023D);
inline constexpr NTSTATUS STATUS_CONNECTION_ABORTED = static_cast<NTSTATUS>(0xC0000241);
inline constexpr NTSTATUS STATUS_DEVICE_REMOVED = static_cast<NTSTATUS>(0xC00002B6);
inline constexpr NTSTATUS STATUS_DEVICE_BUSY = static_cast<NTSTATUS>(0x80000011);
inline constexpr NTSTATUS STATUS_IMPLEMENTATION_LIMIT = static_cast<NTSTATUS>(0xC000042B);
