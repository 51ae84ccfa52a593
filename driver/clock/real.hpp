#pragma once

#include <dlfcn.h>

/// The C library's function of that name, behind the one of this library. Looked up once.
#define RNIC_REAL(function)                                                                         \
  ([] {                                                                                             \
    static const auto found = reinterpret_cast<decltype(&::function)>(dlsym(RTLD_NEXT, #function)); \
    return found;                                                                                   \
  }())
