#include "driver/win32/handle_table.hpp"

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace rnic::win32 {
namespace {

struct HandleTable {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::shared_ptr<HandleObject>> objects;
  std::uintptr_t next = kStep;

  static constexpr std::uintptr_t kStep = 4;  // the two low bits are the program's
};

// Never destroyed: threads that outlive main close their handles.
HandleTable& table() {
  static HandleTable& instance = *new HandleTable;
  return instance;
}

std::uintptr_t number_of(HANDLE handle) { return reinterpret_cast<std::uintptr_t>(handle) & ~(HandleTable::kStep - 1); }

}  // namespace

HANDLE open_handle(std::shared_ptr<HandleObject> object) {
  auto& handles = table();
  const std::lock_guard lock(handles.mutex);
  const std::uintptr_t number = handles.next;
  handles.objects.emplace(number, std::move(object));
  handles.next += HandleTable::kStep;
  return reinterpret_cast<HANDLE>(number);
}

bool close_handle(HANDLE handle) {
  auto& handles = table();
  std::shared_ptr<HandleObject> object;
  {
    const std::lock_guard lock(handles.mutex);
    const auto found = handles.objects.find(number_of(handle));
    if (found == handles.objects.end()) return false;
    object = std::move(found->second);
    handles.objects.erase(found);
  }
  object->on_handle_closed();
  return true;
}

std::shared_ptr<HandleObject> find_handle(HANDLE handle) {
  auto& handles = table();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.objects.find(number_of(handle));
  return found == handles.objects.end() ? nullptr : found->second;
}

}  // namespace rnic::win32
