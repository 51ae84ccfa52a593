#pragma once

#include <memory>

#include "driver/win32/types.h"

/// What stands behind a HANDLE on Linux.
///
/// A handle is a number for an object, valid in the process until close_handle. The two low bits of a handle are
/// ignored, so a program may use bit 0 of OVERLAPPED::hEvent ("set the event, post nothing to the port"). Whoever uses
/// an object keeps it, so a handle may be closed at any time.
namespace rnic::win32 {

class HandleObject {
 public:
  HandleObject() = default;
  HandleObject(const HandleObject&) = delete;
  HandleObject& operator=(const HandleObject&) = delete;
  virtual ~HandleObject() = default;

  /// Its handle has been closed.
  virtual void on_handle_closed() {}
};

/// Makes a handle for `object`. Throws std::bad_alloc.
[[nodiscard]] HANDLE open_handle(std::shared_ptr<HandleObject> object);
/// False if there is no such handle.
bool close_handle(HANDLE handle);
/// The object of a handle; null if there is none.
[[nodiscard]] std::shared_ptr<HandleObject> find_handle(HANDLE handle);

/// The object of a handle, null if there is none of that class.
template <typename T>
[[nodiscard]] std::shared_ptr<T> find_handle_as(HANDLE handle) {
  return std::dynamic_pointer_cast<T>(find_handle(handle));
}

}  // namespace rnic::win32
