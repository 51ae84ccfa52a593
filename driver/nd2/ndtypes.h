#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

// The Windows types that the NetworkDirect interface uses, with their Windows widths (`unsigned long` has 64 bits on
// Linux, ULONG has 32), and the COM base. Global names, because that is what applications of the interface use.

using ULONG = std::uint32_t;
using DWORD = std::uint32_t;
using LONG = std::int32_t;
using HRESULT = std::int32_t;
using BOOL = std::int32_t;
using USHORT = std::uint16_t;
using UINT8 = std::uint8_t;
using UINT16 = std::uint16_t;
using UINT32 = std::uint32_t;
using UINT64 = std::uint64_t;
using SIZE_T = std::size_t;
using ULONG_PTR = std::uintptr_t;
using KAFFINITY = std::uintptr_t;
using VOID = void;
using HANDLE = void*;

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

[[nodiscard]] constexpr bool SUCCEEDED(HRESULT status) { return status >= 0; }
[[nodiscard]] constexpr bool FAILED(HRESULT status) { return status < 0; }

inline constexpr HRESULT S_OK = 0;
inline constexpr HRESULT E_NOINTERFACE = static_cast<HRESULT>(0x80004002);
inline constexpr HRESULT E_POINTER = static_cast<HRESULT>(0x80004003);

struct GUID {
  std::uint32_t Data1;
  std::uint16_t Data2;
  std::uint16_t Data3;
  std::uint8_t Data4[8];
  bool operator==(const GUID&) const = default;
};
using IID = GUID;
using REFIID = const IID&;

/// Request block of an overlapped method. `Internal` holds the status: ND_PENDING, then the final one.
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

struct SOCKET_ADDRESS {
  sockaddr* lpSockaddr;
  std::int32_t iSockaddrLength;
};

struct SOCKET_ADDRESS_LIST {
  std::int32_t iAddressCount;
  SOCKET_ADDRESS Address[1];
};

static_assert(sizeof(GUID) == 16);
static_assert(sizeof(OVERLAPPED) == 32 && offsetof(OVERLAPPED, hEvent) == 24);
static_assert(sizeof(SOCKET_ADDRESS) == 16 && sizeof(SOCKET_ADDRESS_LIST) == 24);

inline constexpr IID IID_IUnknown{0x00000000, 0x0000, 0x0000, {0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};

/// Base of all interfaces. No virtual destructor: the order of virtual functions is the binary interface, and objects
/// end with their last Release.
class IUnknown {
 public:
  virtual HRESULT QueryInterface(REFIID iid, void** object) = 0;
  virtual ULONG AddRef() = 0;
  virtual ULONG Release() = 0;

 protected:
  ~IUnknown() = default;
};
