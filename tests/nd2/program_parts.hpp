#pragma once

#include <cstdio>
#include <cstdlib>

#include <windows.h>

#include <winsock2.h>

#include <ws2tcpip.h>

#include <ndspi.h>
#include <ndsupport.h>

/// What programs to the published interfaces share: each ends at the first call that fails, with its name and status.
namespace program_parts {

inline void require(HRESULT status, const char* what) {
  if (status == ND_SUCCESS) return;
  std::printf("%s: %#010x\n", what, static_cast<unsigned>(status));
  std::fflush(stdout);
  std::_Exit(1);
}

inline sockaddr_in address_of(const char* text, USHORT port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}
inline const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

}  // namespace program_parts
