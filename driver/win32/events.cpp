#include <algorithm>
#include <functional>
#include <vector>

#include "driver/win32/completion_port.hpp"
#include "driver/win32/last_error.hpp"
#include "driver/win32/waitable.hpp"

using namespace rnic::win32;

BOOL CloseHandle(HANDLE object) {
  if (object == GetCurrentThread() || object == GetCurrentProcess()) return TRUE;
  return close_handle(object) ? TRUE : fail(ERROR_INVALID_HANDLE);
}

HANDLE CreateEvent(LPSECURITY_ATTRIBUTES security, BOOL manual_reset, BOOL set, const void* name) {
  if (security != nullptr || name != nullptr) return fail(ERROR_NOT_SUPPORTED, HANDLE{});
  return guarded(HANDLE{}, [&] { return open_handle(std::make_shared<Event>(manual_reset != FALSE, set != FALSE)); });
}

BOOL SetEvent(HANDLE event) {
  const auto object = find_handle_as<Event>(event);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE);
  object->set();
  return TRUE;
}

BOOL ResetEvent(HANDLE event) {
  const auto object = find_handle_as<Event>(event);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE);
  object->reset();
  return TRUE;
}

DWORD WaitForSingleObject(HANDLE object, DWORD milliseconds) {
  return WaitForMultipleObjects(1, &object, FALSE, milliseconds);
}

DWORD WaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL all, DWORD milliseconds) {
  if (count == 0 || count > MAXIMUM_WAIT_OBJECTS || handles == nullptr)
    return fail(ERROR_INVALID_PARAMETER, WAIT_FAILED);
  return guarded(WAIT_FAILED, [&] {
    std::vector<std::shared_ptr<Waitable>> objects;
    for (DWORD i = 0; i < count; ++i) {
      objects.push_back(find_handle_as<Waitable>(handles[i]));
      if (objects.back() == nullptr) return fail(ERROR_INVALID_HANDLE, WAIT_FAILED);
    }
    if (all != FALSE) {
      auto sorted = objects;
      std::sort(sorted.begin(), sorted.end(), std::less<>());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        return fail(ERROR_INVALID_PARAMETER, WAIT_FAILED);
    }
    const CompletionPort::Pause pause;
    std::size_t first = 0;
    switch (Waitable::wait_for(objects, all != FALSE, nanoseconds(milliseconds), first)) {
      case Waited::kDone: return WAIT_OBJECT_0 + static_cast<DWORD>(first);
      case Waited::kTimeout: return WAIT_TIMEOUT;
      case Waited::kGone: break;
    }
    return fail(ERROR_OPERATION_ABORTED, WAIT_FAILED);
  });
}
