#pragma once

#include "driver/win32/winsock2.h"

/// 1; 0: it is no address of that family; -1: WSAEAFNOSUPPORT.
INT InetPton(INT family, LPCSTR text, PVOID address);
INT InetPton(INT family, LPCWSTR text, PVOID address);
/// `text`, or null: WSAEAFNOSUPPORT, WSAEINVAL (no room). `room` in characters.
LPCSTR InetNtop(INT family, const void* address, LPSTR text, SIZE_T room);
LPCWSTR InetNtop(INT family, const void* address, LPWSTR text, SIZE_T room);
