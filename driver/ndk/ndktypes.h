#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "driver/ndk/ndkstatus.h"

// The Windows kernel's types that the Network Direct kernel provider interface uses, with their Windows widths
// (`unsigned long` has 64 bits on Linux, ULONG has 32). Global names, because that is what consumers of the interface
// use.

using SOCKADDR = sockaddr;
using PSOCKADDR = sockaddr*;

inline constexpr ULONG PAGE_SIZE = 4096;

struct GROUP_AFFINITY {
  KAFFINITY Mask;
  USHORT Group;
  USHORT Reserved[3];
};

/// Describes memory that its owner keeps locked. Of a chain each describes what follows the one before.
struct MDL {
  MDL* Next;
  void* StartVa;     ///< Of the first page
  ULONG ByteOffset;  ///< Of the first byte in that page
  ULONG ByteCount;
};

[[nodiscard]] inline void* MmGetMdlVirtualAddress(const MDL* mdl) {
  return static_cast<std::byte*>(mdl->StartVa) + mdl->ByteOffset;
}
/// An MDL of one piece of memory.
[[nodiscard]] inline MDL mdl_of(void* memory, ULONG bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  return {.Next = nullptr,
          .StartVa = reinterpret_cast<void*>(at & ~std::uintptr_t{PAGE_SIZE - 1}),
          .ByteOffset = static_cast<ULONG>(at & (PAGE_SIZE - 1)),
          .ByteCount = bytes};
}
