#pragma once

#include <cstddef>
#include <cstdint>

// Types of Windows with their Windows widths: `unsigned long` has 64 bits on Linux, ULONG has 32. Global names, because
// that is what programs use.

using BYTE = std::uint8_t;
using UCHAR = std::uint8_t;
using UINT8 = std::uint8_t;
using CHAR = char;
using SHORT = std::int16_t;
using WORD = std::uint16_t;
using USHORT = std::uint16_t;
using UINT16 = std::uint16_t;
using INT = std::int32_t;
using INT32 = std::int32_t;
using LONG = std::int32_t;
using BOOL = std::int32_t;
using HRESULT = std::int32_t;
using NTSTATUS = std::int32_t;
using UINT = std::uint32_t;
using UINT32 = std::uint32_t;
using ULONG = std::uint32_t;
using DWORD = std::uint32_t;
using INT64 = std::int64_t;
using LONG64 = std::int64_t;
using LONGLONG = std::int64_t;
using UINT64 = std::uint64_t;
using ULONG64 = std::uint64_t;
using ULONGLONG = std::uint64_t;
using DWORD64 = std::uint64_t;
using DWORDLONG = std::uint64_t;
using SIZE_T = std::size_t;
using SSIZE_T = std::ptrdiff_t;
using INT_PTR = std::intptr_t;
using LONG_PTR = std::intptr_t;
using UINT_PTR = std::uintptr_t;
using ULONG_PTR = std::uintptr_t;
using DWORD_PTR = std::uintptr_t;
using KAFFINITY = std::uintptr_t;
using BOOLEAN = std::uint8_t;
using WCHAR = wchar_t;  // 32 bits here; nothing that leaves the process has any
using VOID = void;
using HANDLE = void*;

using PVOID = void*;
using LPVOID = void*;
using LPCVOID = const void*;
using LPSTR = char*;
using LPCSTR = const char*;
using PCSTR = const char*;
using LPWSTR = wchar_t*;
using LPCWSTR = const wchar_t*;
using PCWSTR = const wchar_t*;
using LPDWORD = DWORD*;
using PDWORD = DWORD*;
using PULONG = ULONG*;
using LPBOOL = BOOL*;
using PHANDLE = HANDLE*;
using LPHANDLE = HANDLE*;
using PULONG_PTR = ULONG_PTR*;

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

[[nodiscard]] constexpr bool SUCCEEDED(HRESULT status) { return status >= 0; }
[[nodiscard]] constexpr bool FAILED(HRESULT status) { return status < 0; }
[[nodiscard]] constexpr bool NT_SUCCESS(NTSTATUS status) { return status >= 0; }

inline constexpr HRESULT S_OK = 0;
inline constexpr HRESULT S_FALSE = 1;
inline constexpr HRESULT E_NOINTERFACE = static_cast<HRESULT>(0x80004002);
inline constexpr HRESULT E_POINTER = static_cast<HRESULT>(0x80004003);
inline constexpr HRESULT E_FAIL = static_cast<HRESULT>(0x80004005);
inline constexpr HRESULT E_OUTOFMEMORY = static_cast<HRESULT>(0x8007000E);
inline constexpr HRESULT E_INVALIDARG = static_cast<HRESULT>(0x80070057);

union LARGE_INTEGER {
  struct {
    DWORD LowPart;
    LONG HighPart;
  };
  LONGLONG QuadPart;
};
union ULARGE_INTEGER {
  struct {
    DWORD LowPart;
    DWORD HighPart;
  };
  ULONGLONG QuadPart;
};
/// Time in units of 100 ns.
struct FILETIME {
  DWORD dwLowDateTime;
  DWORD dwHighDateTime;
};

/// Request block of an overlapped operation. `Internal` holds its NTSTATUS: STATUS_PENDING (0x103), then the final one;
/// InternalHigh the bytes that it moved.
struct OVERLAPPED {
  ULONG_PTR Internal;
  ULONG_PTR InternalHigh;
  union {
    struct {
      DWORD Offset;
      DWORD OffsetHigh;
    };
    void* Pointer;
  };
  HANDLE hEvent;
};
using LPOVERLAPPED = OVERLAPPED*;

/// A finished operation, as a completion port gives it.
struct OVERLAPPED_ENTRY {
  ULONG_PTR lpCompletionKey;
  LPOVERLAPPED lpOverlapped;
  ULONG_PTR Internal;
  DWORD dwNumberOfBytesTransferred;
};
using LPOVERLAPPED_ENTRY = OVERLAPPED_ENTRY*;

static_assert(sizeof(OVERLAPPED) == 32 && offsetof(OVERLAPPED, hEvent) == 24);
static_assert(sizeof(OVERLAPPED_ENTRY) == 32 && sizeof(LARGE_INTEGER) == 8 && sizeof(FILETIME) == 8);

struct GUID {
  std::uint32_t Data1;
  std::uint16_t Data2;
  std::uint16_t Data3;
  std::uint8_t Data4[8];
  bool operator==(const GUID&) const = default;
};
using IID = GUID;
using CLSID = GUID;
using REFIID = const IID&;
using REFGUID = const GUID&;
using REFCLSID = const CLSID&;
static_assert(sizeof(GUID) == 16);
