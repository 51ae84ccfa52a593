#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/time.hpp"
#include "testbench/endpoint.hpp"

namespace rnic::testbench {

enum class TrafficKind : std::uint8_t { kSend, kWrite, kRead, kInlineSend, kInlineWrite };
inline constexpr std::size_t kTrafficKinds = 5;
[[nodiscard]] constexpr const char* name(TrafficKind kind) {
  constexpr const char* kNames[] = {"send", "write", "read", "inline_send", "inline_write"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// A fault that the work puts there itself, on purpose: it must be reported.
enum class PlantedSoakFault : std::uint8_t {
  kNone,
  kLostAdd,      ///< What an atomic added is taken away again
  kStaleCell,    ///< A cell of shared memory falls back to what it held before
  kTornCell,     ///< Half of it does
  kNoFence,      ///< A request that uses what a Read brings does not wait for it
  kWrongOrder,   ///< Two Writes to the same bytes are posted the other way round
  kLostEvent,    ///< Completion events are not told any more
  kSpoiltWrite,  ///< What a Write has brought to its target changes
};

struct TrafficOptions {
  std::uint32_t mixes = 0;   ///< Threads with a TrafficMix, by turns towards host 1 and host 0
  std::uint32_t shares = 0;  ///< TrafficShares, by turns towards host 1 and host 0; each has a thread on both hosts
  PlantedSoakFault planted = PlantedSoakFault::kNone;
  std::uint32_t pairs = 4;
  std::uint32_t pairs_per_thread = 8;
  std::uint64_t requests = 0;  ///< Of each direction of each pair; 0: until stop
  std::uint32_t window = 16;   ///< Most requests of a direction that are planned and not done
  std::uint32_t most_bytes = 20'000;
  std::uint32_t big_bytes = 300'000;  ///< The longest message
  double big_chance = 0.002;          ///< Of a message longer than most_bytes
  double own_region_chance =
      0.03;  ///< Of a request whose memory is registered for it alone and deregistered afterwards
  double window_chance =
      0.5;  ///< Of such a request, of Writes and Reads, that it goes through a memory window of its region
  double late_receive_chance = 0;  ///< Of a Receive that is posted after its SEND, so that the sender meets RNR
  std::uint64_t gap_ns = 0;        ///< Longest random pause between two requests of a direction
  /// From the filling of a Read's source, or a Write's target, to its posting: in a weak memory order the stores take
  /// their time.
  std::uint64_t fill_lead_ns = 0;
  /// A direction with work to do, and no completion in this time, hangs; a Write whose bytes are not there by then is
  /// wrong.
  std::uint64_t hang_ns = 20'000'000;
  std::uint8_t set_bits = 0;     ///< That every byte has which a stream's request moves
  ConnectParameters connection;  ///< Timers and retry counts; the rest is chosen for each pair
  /// Each pair has IP addresses of its own (ConnectParameters::subnet), from those of `connection` on. Otherwise all
  /// pairs have these.
  bool own_addresses = false;
  /// A drawn world's wire may bring more than the PCI Express of a host takes: its receive buffer then overflows, and
  /// what that loses is repaired. Elsewhere an overflow is wrong.
  bool may_overflow = false;
};

/// What was done beside the streams (TrafficMix).
struct MixCounts {
  std::uint64_t requests = 0;          ///< Completed, of all kinds
  std::uint64_t shared_receives = 0;   ///< Messages that took their Receive from a shared receive queue
  std::uint64_t send_invalidates = 0;  ///< Of these, those that invalidated a key
  std::uint64_t fast_registrations = 0;
  std::uint64_t binds = 0;
  std::uint64_t keys_ended = 0;                                ///< Of both, by either end
  std::uint64_t unreliable_sent = 0, unreliable_received = 0;  ///< UC messages
  std::uint64_t datagrams_sent = 0, datagrams_received = 0;
  std::uint64_t repeated = 0;  ///< Of those of UC and UD: came again
  std::uint64_t resizes = 0;   ///< Of completion queues
};

/// What was done on shared memory (TrafficShare).
struct ShareCounts {
  std::uint64_t adds = 0, swaps = 0;               ///< Atomics completed
  std::uint64_t swapped = 0;                       ///< Of the swaps, those that found what they compared with
  std::uint64_t word_reads = 0;                    ///< Of words on which atomics work
  std::uint64_t cell_writes = 0, cell_reads = 0;   ///< To and from cells that several queue pairs write
  std::uint64_t cell_looks = 0;                    ///< Of the processor
  std::uint64_t fenced = 0;                        ///< Messages whose payload the Read or atomic before them brought
  std::uint64_t overwrites = 0;                    ///< Writes to bytes that another one had just written
  std::uint64_t events = 0, solicited_events = 0;  ///< Completion events; of them those of an arm for solicited entries
  std::uint64_t quiet_entries = 0;                 ///< Entries of a queue that is armed for errors
  std::uint64_t overruns = 0;                      ///< Of such queues, told by their event
};

/// What all streams of a Traffic tell.
struct TrafficReport {
  std::array<std::uint64_t, kTrafficKinds> completed{};  ///< Requests by kind, checked
  std::uint64_t bytes = 0;                               ///< Of their messages
  std::uint64_t receives = 0;
  std::uint64_t silent = 0;  ///< Of the requests, those without completion
  std::uint64_t registrations = 0;
  std::uint64_t binds = 0;          ///< Of windows through which a request went
  std::uint64_t invalidations = 0;  ///< Of such windows; the others are unbound by their release
  MixCounts mix;
  ShareCounts share;
  std::uint64_t wrong = 0;            ///< Wrong status, order, byte, or a byte changed that nothing may change
  std::uint64_t hung = 0;             ///< Requests that never completed
  std::vector<std::string> messages;  ///< The first things that went wrong
  bool stopping = false;              ///< No new work
  model::Picoseconds wrong_at = 0;    ///< When the first of them was noted; 0: never

  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto count : completed) sum += count;
    return sum;
  }
  void note(std::string text) {
    constexpr std::size_t kMost = 10;
    stopping = true;
    if (wrong_at == 0) wrong_at = model::now_ps();
    if (messages.size() < kMost) messages.push_back(std::move(text));
  }
};

}  // namespace rnic::testbench
