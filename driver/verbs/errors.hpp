#pragma once

#include <cerrno>
#include <new>
#include <utility>

#include "driver/result.hpp"

// How the driver's errors reach a program: functions that return int return a positive errno, functions that return a
// pointer return null and set errno.

namespace rnic::verbs {

[[nodiscard]] int errno_of(Error error);

[[nodiscard]] inline int errno_of(const Result<void>& done) { return done.ok() ? 0 : errno_of(done.error()); }

/// Null, with errno set.
[[nodiscard]] inline std::nullptr_t refuse(int code) {
  errno = code;
  return nullptr;
}
[[nodiscard]] inline std::nullptr_t refuse(Error error) { return refuse(errno_of(error)); }

/// Runs `body`, which returns a pointer; a lack of memory inside is ENOMEM.
template <typename Body>
auto or_null(Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM);
  }
}

/// Runs `body`, which returns an errno; a lack of memory inside is ENOMEM.
template <typename Body>
int or_enomem(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

}  // namespace rnic::verbs
