#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/machine.hpp"
#include "driver/result.hpp"

namespace rnic {

/// Memory that the device can reach, allocated by Device::dma_alloc. Plain data: its owner frees it with dma_free.
struct DmaBuffer {
  void* pointer{};       ///< Where the processor sees it; zeroed, aligned to 4 KiB
  std::uint64_t iova{};  ///< Where the device sees it, one contiguous range, aligned to 4 KiB
  std::size_t size{};    ///< Bytes, a multiple of 4 KiB
};

inline constexpr unsigned kLogDevicePage = 12;
inline constexpr std::size_t kDevicePageBytes = std::size_t{1} << kLogDevicePage;

/// Whose memory an address is in.
struct AddressSpace {
  enum class Kind : std::uint8_t {
    kOwn,      ///< Of the process that this code runs in, the kernel driver's own too
    kProcess,  ///< Of another process of the machine
  };
  Kind kind{Kind::kOwn};
  std::int32_t process{};  ///< kProcess: its number, which the machine has given it
};

/// The driver's only way to a device: its registers (BAR0), memory it can DMA, its interrupts, and time. A process has
/// only what is of Machine.
///
/// Whoever implements it (a PCI function, a simulated machine) keeps these ordering rules; driver/mmio.hpp
/// has the named functions that rely on them.
///
/// 1. write64 is a posted write to uncached memory. Those of a thread reach the device in program order, and none is
///    merged, split or repeated.
/// 2. write_burst64 writes 64 bytes to memory that the processor may combine writes to; `offset` is a multiple of 64.
/// Its
///    order against other writes to the device, and how long it takes to leave the processor, are left to
///    window_write_barrier and window_flush_barrier.
/// 3. A posted write is not done when the call returns. read64 is not posted: it returns after every earlier
///    write of the same thread has taken effect, and it flushes them.
/// 4. Stores to DMA memory are not ordered before a later write64 unless dma_write_barrier stands between, nor before a
///    later write_burst64 unless window_write_barrier does.
/// 5. The device writes a completion entry after the payload that it reports, and the last byte of the entry (with
///    the phase bit) never before its other bytes. Loads of the entry's other bytes, or of the payload, are
///    ordered after the load of the phase only if dma_read_barrier stands between.
/// 6. A message-signalled interrupt is seen (it counts in wake_count) after all DMA writes that the device made before
/// it.
/// 7. read64 returns after all DMA writes that the device made before it answered are visible (producer and consumer
///    rule of PCI Express, base specification 2.4.1).
///
/// Threads: every function may be called from several threads at once. read64, elapse, wait, map_process_pages and
/// reset_function may let time pass, that is, run other threads of the machine (in a simulator these may be coroutines
/// of one thread), so the driver never holds a mutex across them (SleepLock is for that). All other functions return
/// without letting time pass, and are called with locks held.
class Device : public Machine {
 public:
  /// Reads the 64-bit register at `offset` (multiple of 8) of BAR0. A device that is gone answers all ones.
  [[nodiscard]] virtual std::uint64_t read64(std::uint64_t offset) = 0;
  /// Allocates zeroed memory of at least `bytes` (rounded up to 4 KiB) that the device may read and write.
  /// Errors: kOutOfMemory. The caller owns the buffer and gives it back with dma_free.
  [[nodiscard]] virtual Result<DmaBuffer> dma_alloc(std::size_t bytes) = 0;
  /// Frees a buffer of dma_alloc; the device must no longer use it.
  virtual void dma_free(const DmaBuffer& buffer) = 0;

  /// Pins the application's memory [p, p + length) and maps it for the device, read-only unless `writable`.
  /// Returns the device address of each 4 KiB page; the first is that of the page that holds `p`.
  /// Mappings of the same page are counted and independent of each other.
  /// Errors: kAccessViolation (a page is not mapped in the process, or not writable while `writable`),
  /// kOutOfMemory; nothing stays mapped after an error.
  [[nodiscard]] virtual Result<std::vector<std::uint64_t>> map_pages(const void* p, std::size_t length,
                                                                     bool writable) = 0;
  /// Undoes one map_pages, with the same arguments and the addresses it returned. The device must no longer use
  /// them: a later DMA to them faults.
  virtual void unmap_pages(const void* p, std::size_t length, std::span<const std::uint64_t> iovas) = 0;

  /// The same for memory of another process, at `address` there. Errors: also kNotSupported (the machine has no other
  /// processes).
  [[nodiscard]] virtual Result<std::vector<std::uint64_t>> map_process_pages(std::int32_t, std::uint64_t, std::size_t,
                                                                             bool) {
    return Error::kNotSupported;
  }
  virtual void unmap_process_pages(std::int32_t, std::uint64_t, std::size_t, std::span<const std::uint64_t>) {}

  /// Resets the function (PCI Express base specification 6.6.2). When it returns the device reaches no memory on behalf
  /// of what it was told before, it sends no more interrupts, and its registers have their reset values, or it is gone.
  virtual void reset_function() = 0;

  /// What the driver must write to the MSI-X table entry of `vector` so that its messages count in wake_count.
  struct MsixMessage {
    std::uint64_t address{};
    std::uint32_t data{};
  };
  [[nodiscard]] virtual MsixMessage msix_message(std::uint32_t vector) = 0;

  /// Unpredictable bits for keys, queue pair numbers and sequence numbers. A simulated machine draws them from its
  /// one seed.
  [[nodiscard]] virtual std::uint64_t random64() = 0;
};

}  // namespace rnic
