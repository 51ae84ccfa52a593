#pragma once

#include <new>
#include <utility>

#include "driver/win32/windows.h"

namespace rnic::win32 {

/// What a function returns that fails for `error`.
template <typename T>
T fail(DWORD error, T result) {
  SetLastError(error);
  return result;
}
inline BOOL fail(DWORD error) { return fail(error, FALSE); }

/// Runs the body of a function; a lack of memory becomes its error.
template <typename Body, typename T>
T guarded(T failed, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return fail(ERROR_NOT_ENOUGH_MEMORY, failed);
  }
}

/// Time limit of a wait.
[[nodiscard]] std::uint64_t nanoseconds(DWORD milliseconds);

}  // namespace rnic::win32
