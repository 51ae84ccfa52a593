#pragma once

#include "driver/win32/windows.h"

/// CreateThread for those who use the C library: its address of the handle, 0 if there is none.
inline std::uintptr_t _beginthreadex(void* security, unsigned stack, unsigned (*start)(void*), void* argument,
                                     unsigned flags, unsigned* id) {
  return reinterpret_cast<std::uintptr_t>(
      CreateThread(static_cast<LPSECURITY_ATTRIBUTES>(security), stack, start, argument, flags, id));
}
