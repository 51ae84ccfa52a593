#include "driver/remote/remote_machine.hpp"

#include <sched.h>

#include <algorithm>
#include <optional>

#include "driver/costs.hpp"
#include "driver/remote/outside_time.hpp"

namespace rnic::remote {
namespace {

/// How often who waits looks whether the connection still is: a machine that is killed wakes nobody.
constexpr std::uint64_t kLookNs = 100'000'000;
/// So many polls in vain, and the device needs the processor more than who polls.
constexpr std::uint32_t kVainPolls = 16;
/// The longest that a poll in vain waits: who polls may have other things to do.
constexpr std::uint64_t kPauseNs = 200'000;

}  // namespace

void RemoteMachine::write64(std::uint64_t offset, std::uint64_t value) {
  write(offset, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
}

void RemoteMachine::write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) { write(offset, data); }

void RemoteMachine::write(std::uint64_t offset, std::span<const std::uint8_t> data) {
  DoorbellRing& ring = memory_.doorbells;
  const std::uint32_t ticket = ring.draw();
  if (!ring.free_for(ticket) && !wait_for_room(ticket)) return;
  ring.put(ticket, offset, data);
  // The machine says that it sleeps and looks again; this looks behind what it has put. One of both sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (memory_.asleep.load(std::memory_order_relaxed) != 0) connection_->ring_bell();
}

/// False: there will be none, for the machine is gone.
bool RemoteMachine::wait_for_room(std::uint32_t ticket) {
  while (!memory_.doorbells.free_for(ticket)) {
    if (connection_->look_whether_gone()) return false;
    memory_.doorbells.wait_for_room(ticket, kLookNs);
  }
  return true;
}

bool RemoteMachine::wait(std::uint64_t seen, std::uint64_t timeout_ns) {
  const std::uint64_t start = now_ns();
  for (;;) {
    if (wake_count() != seen) return true;
    if (connection_->look_whether_gone()) return false;
    std::uint64_t left = kLookNs;
    if (timeout_ns != kForever) {
      const std::uint64_t passed = now_ns() - start;
      if (passed >= timeout_ns) return false;
      left = std::min(left, timeout_ns - passed);
    }
    memory_.wakes.wait(static_cast<std::uint32_t>(seen), left);
  }
}

void RemoteMachine::elapse(std::uint64_t ns) {
  if (ns >= cost::kAdminPollNs) pause();
}

void RemoteMachine::relax() {
  const std::uint32_t writes = memory_.writes.count.load();
  if (seen_writes_.exchange(writes, std::memory_order_relaxed) != writes) {
    vain_polls_.store(0, std::memory_order_relaxed);
  } else if (vain_polls_.fetch_add(1, std::memory_order_relaxed) >= kVainPolls) {
    memory_.writes.wait(writes, kPauseNs);
  }
}

void RemoteMachine::pause() {
  if (!removed()) memory_.writes.wait(memory_.writes.count.load(), kPauseNs);
}

/// Threads on two processors may look at the time outside in one order and come here in the other.
std::uint64_t RemoteMachine::now_ns() {
  std::optional<std::uint64_t> looked;
  while (!(looked = memory_.clock.read(outside_monotonic_ns))) {
    // Who killed the machine while it held its clock has stopped time.
    if (connection_->look_whether_gone()) return told_ns_.load(std::memory_order_relaxed);
    sched_yield();
  }
  const std::uint64_t now = *looked;
  std::uint64_t told = told_ns_.load(std::memory_order_relaxed);
  while (told < now && !told_ns_.compare_exchange_weak(told, now, std::memory_order_relaxed)) continue;
  return std::max(told, now);
}

}  // namespace rnic::remote
