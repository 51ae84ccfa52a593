#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "driver/win32/last_error.hpp"

using namespace rnic::win32;

namespace {

/// What VirtualAlloc has given: how many bytes at which address.
struct Allocations {
  std::mutex mutex;
  std::unordered_map<void*, SIZE_T> bytes;
};

Allocations& allocations() {
  static Allocations& instance = *new Allocations;  // never destroyed: threads may outlive main
  return instance;
}

std::optional<int> protection_of(DWORD protection) {
  switch (protection) {
    case PAGE_NOACCESS: return PROT_NONE;
    case PAGE_READONLY: return PROT_READ;
    case PAGE_READWRITE: return PROT_READ | PROT_WRITE;
    default: return std::nullopt;
  }
}

}  // namespace

HANDLE GetProcessHeap() {
  static char heap;
  return &heap;
}

LPVOID HeapAlloc(HANDLE heap, DWORD flags, SIZE_T bytes) {
  if (heap != GetProcessHeap()) return fail(ERROR_INVALID_HANDLE, LPVOID{});
  if ((flags & ~HEAP_ZERO_MEMORY) != 0) return fail(ERROR_NOT_SUPPORTED, LPVOID{});
  const SIZE_T some = bytes != 0 ? bytes : 1;  // an allocation of nothing is one all the same
  void* const memory = (flags & HEAP_ZERO_MEMORY) != 0 ? std::calloc(some, 1) : std::malloc(some);
  return memory != nullptr ? memory : fail(ERROR_NOT_ENOUGH_MEMORY, LPVOID{});
}

BOOL HeapFree(HANDLE heap, DWORD, LPVOID memory) {
  if (heap != GetProcessHeap()) return fail(ERROR_INVALID_HANDLE);
  std::free(memory);
  return TRUE;
}

LPVOID VirtualAlloc(LPVOID address, SIZE_T bytes, DWORD type, DWORD protection) {
  const auto allowed = protection_of(protection);
  if (bytes == 0 || (type & (MEM_COMMIT | MEM_RESERVE)) == 0 || !allowed)
    return fail(ERROR_INVALID_PARAMETER, LPVOID{});
  if (address != nullptr || (type & ~(MEM_COMMIT | MEM_RESERVE)) != 0) return fail(ERROR_NOT_SUPPORTED, LPVOID{});
  void* const memory = mmap(nullptr, bytes, *allowed, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(ERROR_NOT_ENOUGH_MEMORY, LPVOID{});
  return guarded(LPVOID{}, [&] {
    auto& all = allocations();
    const std::lock_guard lock(all.mutex);
    all.bytes.emplace(memory, bytes);
    return memory;
  });
}

BOOL VirtualFree(LPVOID address, SIZE_T bytes, DWORD type) {
  if (type != MEM_RELEASE || bytes != 0) return fail(ERROR_NOT_SUPPORTED);
  auto& all = allocations();
  const std::lock_guard lock(all.mutex);
  const auto found = all.bytes.find(address);
  if (found == all.bytes.end()) return fail(ERROR_INVALID_ADDRESS);
  munmap(address, found->second);
  all.bytes.erase(found);
  return TRUE;
}

BOOL VirtualProtect(LPVOID address, SIZE_T bytes, DWORD protection, PDWORD before) {
  const auto allowed = protection_of(protection);
  if (!allowed || bytes == 0) return fail(ERROR_INVALID_PARAMETER);
  if (before == nullptr) return fail(ERROR_NOACCESS);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(address) + bytes;
  if (mprotect(reinterpret_cast<void*>(begin), end - begin, *allowed) != 0) return fail(ERROR_INVALID_ADDRESS);
  *before = PAGE_READWRITE;
  return TRUE;
}

void* _aligned_malloc(SIZE_T bytes, SIZE_T alignment) {
  void* memory = nullptr;
  const SIZE_T least = alignment < sizeof(void*) ? sizeof(void*) : alignment;
  const int error = posix_memalign(&memory, least, bytes);
  if (error != 0) errno = error;
  return error == 0 ? memory : nullptr;
}

void _aligned_free(void* memory) { std::free(memory); }
