#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "driver/device.hpp"

/// Barriers and accesses to memory that the device shares. The driver uses these names only, never a naked fence.
/// Rule numbers are those of Device (driver/device.hpp).
///
/// Posting a request:
///     copy the WQE to the ring;
///     dma_write_barrier();              // rule 4: the device fetches what was written
///     device.write64(doorbell);         // rule 1: after earlier doorbells
///
/// Posting through the WQE window:
///     copy the WQE to the ring;
///     dma_write_barrier();              // rule 4: the device may fetch the copy in memory instead
///     device.write_burst64(...);        // rules 1 and 2: ascending bursts, none between them (a lock for each UAR)
///
/// Reaping a completion:
///     if (load_phase(entry) != expected) return;
///     dma_read_barrier();               // rule 5: fields and payload are loaded after the phase
///     copy the entry;
///     device.write64(consumer index);   // after the copy: the device may overwrite the entry from now on
namespace rnic {

/// Rule 4. Stores to DMA memory that come before are visible to the device before any later write64 or
/// write_burst64 reaches it.
inline void dma_write_barrier() { std::atomic_thread_fence(std::memory_order_seq_cst); }

/// Rule 5. Loads that come after see what the device wrote before the value that an earlier load returned.
inline void dma_read_barrier() { std::atomic_thread_fence(std::memory_order_acquire); }

/// Orders the loads of an entry before the consumer index that gives its slot back.
inline void dma_release_barrier() { std::atomic_thread_fence(std::memory_order_seq_cst); }

/// Loads the byte that holds the phase bit (bit 0 of the last byte) of an `entry`, once.
inline std::uint8_t load_phase(std::span<const std::uint8_t> entry) {
  const auto* last = entry.data() + entry.size() - 1;
  return static_cast<std::uint8_t>(__atomic_load_n(last, __ATOMIC_RELAXED) & 1U);
}

/// Loads an aligned 64-bit word that the device writes in one piece (rule 5 applies to what it announces).
inline std::uint64_t load_word(const std::uint64_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

/// Copies an entry out of shared memory. The caller has seen its phase and passed dma_read_barrier.
template <std::size_t Bytes>
void copy_entry(std::span<std::uint8_t, Bytes> to, const std::uint8_t* from) {
  std::memcpy(to.data(), from, Bytes);
}

}  // namespace rnic
