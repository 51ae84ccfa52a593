#include "driver/remote/simulated_time.hpp"

#include <algorithm>
#include <ctime>
#include <optional>

#include "driver/remote/outside_time.hpp"

namespace rnic::remote {
namespace {

/// The processor is the machine's meanwhile.
constexpr timespec kPause{0, 20'000};

/// So often who finds the clock held tries at once: the machine holds it for an instant, unless it does not run.
constexpr std::uint32_t kTries = 16;

void pause() { syscall(SYS_nanosleep, &kPause, nullptr); }

}  // namespace

std::uint64_t SimulatedTime::now_ns() {
  std::optional<std::uint64_t> now;
  for (std::uint32_t tries = 1; !(now = memory_.simulated.read(outside_monotonic_ns)); ++tries) {
    // A machine that was killed while it held its clock sets it no more.
    if (connection_.gone() || (tries % kVainReadings == 0 && connection_.look_whether_gone())) return after_the_end();
    if (tries % kTries == 0) pause();
  }
  return connection_.gone() ? after_the_end() : latest(*now + lead_ns_.load(std::memory_order_relaxed));
}

/// Threads may look in one order and come here in the other.
std::uint64_t SimulatedTime::latest(std::uint64_t now) {
  std::uint64_t told = told_ns_.load(std::memory_order_relaxed);
  while (told < now) {
    if (!told_ns_.compare_exchange_weak(told, now, std::memory_order_relaxed)) continue;
    vain_.store(0, std::memory_order_relaxed);
    return now;
  }
  return read_in_vain(told);
}

std::uint64_t SimulatedTime::read_in_vain(std::uint64_t now) {
  const std::uint32_t vain = vain_.fetch_add(1, std::memory_order_relaxed);
  if (vain < kVainReadings) return now;
  if (vain % kVainReadings == 0 && connection_.look_whether_gone()) return now;
  if (memory_.asleep.load(std::memory_order_relaxed) == 0) {
    pause();
    return now;
  }
  lead_ns_.fetch_add(kReadingNs, std::memory_order_relaxed);
  std::uint64_t told = now;
  while (!told_ns_.compare_exchange_weak(told, told + kReadingNs, std::memory_order_relaxed)) continue;
  return told + kReadingNs;
}

void SimulatedTime::show_awaited() {
  const auto latest = [this] {
    return std::max_element(awaited_ns_.begin(), awaited_ns_.end(),
                            [](const auto& one, const auto& other) { return one.load() < other.load(); })
        ->load();
  };
  // Of threads that come here together the last one looks behind what it has stored, and finds what all have.
  for (std::uint64_t shown = latest(), next = 0;; shown = next) {
    memory_.awaited_ns.store(shown);
    next = latest();
    if (next == shown) break;
  }
  // The machine says that it sleeps and looks again; this looks behind what it has asked for. One sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (memory_.asleep.load(std::memory_order_relaxed) != 0) connection_.ring_bell();
}

void SimulatedTime::Wait::begin() {
  auto& places = time_.awaited_ns_;
  const std::uint64_t lead = time_.lead_ns();
  const std::uint64_t machine_ns = instant_ns_ > lead ? instant_ns_ - lead : 0;
  if (machine_ns == 0) return;
  for (std::size_t i = 0; place_ == kMostWaits && i < places.size(); ++i) {
    std::uint64_t none = 0;
    if (places.at(i).compare_exchange_strong(none, machine_ns)) place_ = i;
  }
  time_.show_awaited();
}

SimulatedTime::Wait::~Wait() {
  if (place_ == kMostWaits) return;
  time_.awaited_ns_.at(place_).store(0);
  time_.show_awaited();
}

std::uint64_t SimulatedTime::after_the_end() {
  std::uint64_t ended = 0;
  const std::uint64_t outside = outside_monotonic_ns();
  if (ended_at_ns_.compare_exchange_strong(ended, outside)) ended = outside;
  return told_ns_.load(std::memory_order_relaxed) + (outside > ended ? outside - ended : 0);
}

}  // namespace rnic::remote
