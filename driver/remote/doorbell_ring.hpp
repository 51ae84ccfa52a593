#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "driver/remote/futex.hpp"

namespace rnic::remote {

/// A write to a user access region, as it waits in a ring.
struct Doorbell {
  std::uint32_t offset{};  ///< In BAR0
  std::uint32_t bytes{};   ///< 8 or 64
  std::array<std::uint64_t, 8> data{};
};

/// The doorbells of one process for its machine, in memory that both map: any number of threads write, the machine
/// takes. A writer draws a ticket, which says its place and its turn there; what is written is taken in the order of
/// the tickets, none merged and none lost. All zero is an empty ring.
///
/// The machine believes nothing that it reads here but that there is something: a process can spoil only its own.
class DoorbellRing {
 public:
  static constexpr std::uint32_t kSlots = 1024;

  /// A place in the ring, which its writer fills before anything behind it can be taken.
  [[nodiscard]] std::uint32_t draw() { return next_.fetch_add(1, std::memory_order_relaxed); }
  /// The place is free for the ticket.
  [[nodiscard]] bool free_for(std::uint32_t ticket) const {
    return slot(ticket).turn.load(std::memory_order_acquire) == round(ticket);
  }
  /// Waits at most `timeout_ns` for the machine to take something.
  void wait_for_room(std::uint32_t ticket, std::uint64_t timeout_ns) {
    const std::uint32_t seen = taken_.count.load();
    if (!free_for(ticket)) taken_.wait(seen, timeout_ns);
  }
  /// Precondition: free_for(ticket). `data` is 8 or 64 bytes.
  void put(std::uint32_t ticket, std::uint64_t offset, std::span<const std::uint8_t> data) {
    Slot& to = slot(ticket);
    to.offset = static_cast<std::uint32_t>(offset);
    to.bytes = static_cast<std::uint32_t>(data.size());
    std::memcpy(to.data.data(), data.data(), data.size());
    to.turn.store(round(ticket) + 1, std::memory_order_release);
  }

  /// The machine takes the doorbell of `ticket`, the next one. False: it is not there yet.
  [[nodiscard]] bool take(std::uint32_t ticket, Doorbell& doorbell) {
    Slot& from = slot(ticket);
    if (from.turn.load(std::memory_order_acquire) != round(ticket) + 1) return false;
    doorbell.offset = from.offset;
    doorbell.bytes = from.bytes;
    doorbell.data = from.data;
    from.turn.store((round(ticket) + 2) % kTurns, std::memory_order_release);
    return true;
  }
  [[nodiscard]] bool waits(std::uint32_t ticket) const {
    return slot(ticket).turn.load(std::memory_order_acquire) == round(ticket) + 1;
  }
  /// What take has made free is told to writers that wait.
  void taken() { taken_.advance(); }

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> turn;  ///< round(ticket): free for it; one more: there is its doorbell
    std::uint32_t offset;
    std::uint32_t bytes;
    std::array<std::uint64_t, 8> data;
  };

  static constexpr std::uint32_t kTurns = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / kSlots * 2);
  [[nodiscard]] static std::uint32_t round(std::uint32_t ticket) { return ticket / kSlots * 2; }
  [[nodiscard]] Slot& slot(std::uint32_t ticket) { return slots_[ticket % kSlots]; }
  [[nodiscard]] const Slot& slot(std::uint32_t ticket) const { return slots_[ticket % kSlots]; }

  alignas(64) std::atomic<std::uint32_t> next_;
  alignas(64) CountedWord taken_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace rnic::remote
