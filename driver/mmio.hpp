#pragma once

#include <cstdint>
#include <span>

#include "driver/barrier_hook.hpp"
#include "driver/device.hpp"

/// Barriers and accesses to memory that the device shares. The driver uses these names only, never a naked fence.
/// Rule numbers are those of Device (driver/device.hpp). Each barrier orders what its comment says, for the compiler
/// and for the processor, and no more; docs/driver.md (Barriers) says why each processor needs what is here.
///
/// Posting a request by its doorbell:
///     build the WQE in the ring;
///     dma_write_barrier();              // rule 4: the device fetches what was written
///     device.write64(doorbell);         // rule 1: after earlier doorbells
///
/// Posting through the WQE window (a lock for each UAR):
///     build the WQE in the ring;
///     window_write_barrier();           // rules 2 and 4: the device may fetch the WQE from memory instead
///     device.write_burst64(...);
///     window_flush_barrier();           // rule 2: this burst before the next, and before a doorbell
///
/// Reaping a completion:
///     if (load_phase(entry) != expected) return;
///     dma_read_barrier();               // rule 5: fields and payload are loaded after the phase
///     decode the entry;
///     dma_release_barrier();            // the device may overwrite the entry from now on
///     device.write64(consumer index);
///
/// `site` is for tests (driver/barrier_hook.hpp); nobody gives it.
namespace rnic {

#if defined(__x86_64__)

// Loads pass no loads, stores pass no stores and no earlier loads, as long as no write combining has a part in it
// (Intel SDM volume 3, memory ordering). A doorbell is a store to uncached memory.
namespace barrier {
inline void compiler() { asm volatile("" ::: "memory"); }
inline void stores_before_doorbell() { compiler(); }
inline void stores_before_combined() { asm volatile("sfence" ::: "memory"); }
inline void combined_before_all() { asm volatile("sfence" ::: "memory"); }
inline void load_before_loads() { compiler(); }
inline void loads_before_doorbell() { compiler(); }
}  // namespace barrier

#elif defined(__aarch64__)

// Nothing is ordered by itself. A device is an observer in the outer shareable domain, which the inner shareable
// barriers of C++ fences do not cover (Arm ARM, B2.3). `oshld` orders earlier loads before later loads and stores.
namespace barrier {
inline void stores_before_doorbell() { asm volatile("dmb oshst" ::: "memory"); }
inline void stores_before_combined() { asm volatile("dmb oshst" ::: "memory"); }
inline void combined_before_all() { asm volatile("dsb st" ::: "memory"); }  // also empties the buffer now
inline void load_before_loads() { asm volatile("dmb oshld" ::: "memory"); }
inline void loads_before_doorbell() { asm volatile("dmb oshld" ::: "memory"); }
}  // namespace barrier

#else
// A C++ fence orders memory between threads. It promises nothing of what a device sees, nor of uncached stores.
#error "driver/mmio.hpp: say what orders memory against a device on this processor"
#endif

/// Rule 4. Stores to DMA memory that come before are visible to the device before any later write64 reaches it.
inline void dma_write_barrier(BarrierSite site = BarrierSite::current()) {
  barrier::stores_before_doorbell();
  barrier_hook(Barrier::kDmaWrite, site);
}

/// Rules 2 and 4. Stores to DMA memory that come before are visible to the device before any later write_burst64
/// reaches it, and so are earlier writes to the device.
inline void window_write_barrier(BarrierSite site = BarrierSite::current()) {
  barrier::stores_before_combined();
  barrier_hook(Barrier::kWindowWrite, site);
}

/// Rule 2. Bursts that come before reach the device before any later write to it, of this thread or of one that takes a
/// lock from it, and leave the processor at once.
inline void window_flush_barrier(BarrierSite site = BarrierSite::current()) {
  barrier::combined_before_all();
  barrier_hook(Barrier::kWindowFlush, site);
}

/// Rule 5. Loads that come after see what the device wrote before the value that an earlier load returned.
inline void dma_read_barrier(BarrierSite site = BarrierSite::current()) {
  barrier::load_before_loads();
  barrier_hook(Barrier::kDmaRead, site);
}

/// Orders the loads of an entry before the consumer index that gives its slot back.
inline void dma_release_barrier(BarrierSite site = BarrierSite::current()) {
  barrier::loads_before_doorbell();
  barrier_hook(Barrier::kDmaRelease, site);
}

#if defined(__SANITIZE_THREAD__)
inline constexpr int kDeviceLoad = __ATOMIC_ACQUIRE;  // the sanitizer knows nothing of the barrier behind the load
#else
inline constexpr int kDeviceLoad = __ATOMIC_RELAXED;
#endif

/// Loads the byte that holds the phase bit (bit 0 of the last byte) of an `entry`, once.
inline std::uint8_t load_phase(std::span<const std::uint8_t> entry) {
  const auto* last = entry.data() + entry.size() - 1;
  return static_cast<std::uint8_t>(__atomic_load_n(last, kDeviceLoad) & 1U);
}

/// Loads an aligned 64-bit word that the device writes in one piece (rule 5 applies to what it announces).
inline std::uint64_t load_word(const std::uint64_t* word) { return __atomic_load_n(word, kDeviceLoad); }

}  // namespace rnic
