#pragma once

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "driver/win32/windows.h"
#include "driver/win32/ws2def.h"

// Socket addresses under the names of Winsock. Sockets themselves are the system's.

using SOCKADDR = sockaddr;
using PSOCKADDR = sockaddr*;
using LPSOCKADDR = sockaddr*;
using SOCKADDR_IN = sockaddr_in;
using PSOCKADDR_IN = sockaddr_in*;
using SOCKADDR_IN6 = sockaddr_in6;
using SOCKADDR_STORAGE = sockaddr_storage;
using IN_ADDR = in_addr;
using IN6_ADDR = in6_addr;
using ADDRESS_FAMILY = sa_family_t;

union SOCKADDR_INET {
  SOCKADDR_IN Ipv4;
  SOCKADDR_IN6 Ipv6;
  ADDRESS_FAMILY si_family;
};

inline constexpr int SOCKET_ERROR = -1;

struct WSADATA {
  WORD wVersion;
  WORD wHighVersion;
  char szDescription[257];
  char szSystemStatus[129];
};
using LPWSADATA = WSADATA*;
struct WSAPROTOCOL_INFO;
using LPWSAPROTOCOL_INFO = WSAPROTOCOL_INFO*;

/// Counted; versions up to 2.2. 0, WSAVERNOTSUPPORTED (before 1.0), WSAEFAULT.
int WSAStartup(WORD version, LPWSADATA data);
/// 0; SOCKET_ERROR: WSANOTINITIALISED.
int WSACleanup();
[[nodiscard]] int WSAGetLastError();
void WSASetLastError(int error);

/// An address as text, with a port ("10.0.0.1:5000", "[fd00::1]:5000") or without. `length`: of the room, then of the
/// address, 0; SOCKET_ERROR: WSAEINVAL (it is none of that family), WSAEFAULT (no room; `length` says how much).
int WSAStringToAddress(LPCSTR text, INT family, LPWSAPROTOCOL_INFO protocol, LPSOCKADDR address, INT* length);
int WSAStringToAddress(LPCWSTR text, INT family, LPWSAPROTOCOL_INFO protocol, LPSOCKADDR address, INT* length);
/// The same the other way. `length`: of the room, then of the text with its end, in characters. The port is there if it
/// is not 0.
int WSAAddressToString(const sockaddr* address, DWORD bytes, LPWSAPROTOCOL_INFO protocol, LPSTR text, LPDWORD length);
int WSAAddressToString(const sockaddr* address, DWORD bytes, LPWSAPROTOCOL_INFO protocol, LPWSTR text, LPDWORD length);
