// What tests/tools/check_barriers.py compiles, for each processor, to see what the barriers are. PRETEND_ARM64,
// PRETEND_UNKNOWN: with a compiler for another processor, as far as assembly text.
#include "driver/device.hpp"

#if defined(PRETEND_ARM64)
#undef __x86_64__
#define __aarch64__ 1
#elif defined(PRETEND_UNKNOWN)
#undef __x86_64__
#undef __aarch64__
#endif

#include "driver/mmio.hpp"

extern "C" {
void dma_write() { rnic::dma_write_barrier(); }
void window_write() { rnic::window_write_barrier(); }
void window_flush() { rnic::window_flush_barrier(); }
void dma_read() { rnic::dma_read_barrier(); }
void dma_release() { rnic::dma_release_barrier(); }
/// Two stores that a compiler would make one of, and a load that it would not make again.
int kept_apart(int* memory) {
  *memory = 1;
  rnic::dma_write_barrier();
  *memory = 2;
  rnic::dma_read_barrier();
  return *memory;
}
}
