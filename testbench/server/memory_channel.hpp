#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "driver/remote/futex.hpp"

namespace rnic::testbench {

/// What a machine and its helper for one process share: the machine asks, the helper answers in the same order. All
/// zero at the beginning, when the helper answers that it has reached the process (`opened`).
struct MemoryChannel {
  static constexpr std::uint32_t kSlots = 64;
  /// The largest payload and read of PCI Express.
  static constexpr std::size_t kMostBytes = 4096;

  struct Slot {
    enum class Kind : std::uint32_t { kRead, kWrite, kReach };
    Kind kind;
    std::uint32_t answer;  ///< Of a read and a write: 1 if all was there. kReach: ProcessMemory::Reach
    std::uint32_t ended;   ///< 1: the whole address space is not there any more
    std::uint64_t address, length;
    std::uint16_t length_dw;  ///< kWrite, as are the enables
    std::uint8_t first_be, last_be;
    std::uint32_t writable;  ///< kReach
    std::array<std::uint8_t, kMostBytes> data;
  };

  alignas(64) remote::CountedWord asked;
  alignas(64) remote::CountedWord answered;  ///< The opening counts
  std::uint32_t opened;                      ///< ProcessMemory::Reach
  std::array<Slot, kSlots> slots;

  [[nodiscard]] Slot& slot(std::uint32_t number) { return slots[number % kSlots]; }
};

}  // namespace rnic::testbench
