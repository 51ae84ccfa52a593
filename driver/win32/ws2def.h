#pragma once

#include <sys/socket.h>

#include "driver/win32/types.h"

struct SOCKET_ADDRESS {
  sockaddr* lpSockaddr;
  INT iSockaddrLength;
};
struct SOCKET_ADDRESS_LIST {
  INT iAddressCount;
  SOCKET_ADDRESS Address[1];
};
static_assert(sizeof(SOCKET_ADDRESS) == 16 && sizeof(SOCKET_ADDRESS_LIST) == 24);
