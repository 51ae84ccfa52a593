#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "testbench/timeline/nic_listener.hpp"
#include "testbench/timeline/trace_file.hpp"

namespace rnic::testbench {

inline constexpr std::uint32_t kPsnMask24 = 0xffffff;
/// Whether 24-bit number `a` is `b` or behind it (InfiniBand specification 9.7.2: half the circle).
constexpr bool reaches(std::uint32_t a, std::uint32_t b) { return ((a - b) & kPsnMask24) < 0x800000; }

/// Of the responder: Read responses, ACKs and NAKs, answers to atomics (InfiniBand specification 9.2.1, table 38).
inline constexpr std::uint8_t kFirstResponse = 0x0d, kAckOpcode = 0x11, kLastResponse = 0x12;
constexpr bool is_response(std::uint8_t opcode) { return opcode >= kFirstResponse && opcode <= kLastResponse; }

/// What happens to a work request, docs/timeline.md.
enum class Stage : std::uint8_t {
  kPosted,
  kDoorbell,
  kFetchAsked,
  kFetchIssued,
  kFetchAnswered,
  kTurn,
  kJudged,
  kSent,
  kChecked,
  kPlaced,
  kAckMade,
  kAckBack,
  kRetired,
  kCqeMade,
  kCqeWritten,
  kPolled,
  kCount,
};
inline constexpr auto kStages = static_cast<std::size_t>(Stage::kCount);

/// When a packet that matters for a request was where, picoseconds; 0: not, or nobody has seen it.
struct PacketTimes {
  std::uint64_t taken{}, translated{}, gathered{}, wire_start{}, wire_end{};
};

/// A work request: of a send queue, or a Receive.
struct Request {
  unsigned host{};
  std::uint8_t qp{};
  std::uint32_t qpn{};
  std::uint16_t index{};
  bool receive{};
  std::array<std::uint64_t, kStages> at{};  ///< Picoseconds; 0: has not happened
  std::uint64_t piece{};                    ///< When a piece of it came for the window that did not post it
  bool started{};                           ///< All its packets are made: what follows is known
  std::uint8_t opcode{}, status{};
  bool silent{}, has_cqe{}, over{};
  std::uint32_t first_psn{}, last_psn{}, length{};
  std::uint32_t packets{}, repeated{};
  unsigned lane{};
  PacketTimes last_sent, answered;     ///< Of its last packet (of a Read: of its request), and of what acknowledges it
  TraceFile::Track track{}, answer{};  ///< answer: where the packet that acknowledges it was checked

  /// The first time counts.
  void mark(Stage stage, std::uint64_t now) {
    auto& time = at[static_cast<std::size_t>(stage)];
    if (time == 0) time = now;
    if (piece != 0 && (stage == Stage::kFetchAsked || stage == Stage::kTurn))
      mark(Stage::kDoorbell, std::min(piece, now));
  }
  [[nodiscard]] std::uint64_t when(Stage stage) const { return at[static_cast<std::size_t>(stage)]; }
  /// A Read or an atomic: its answer has data.
  [[nodiscard]] bool asks() const { return !receive && opcode >= 2 && opcode <= 4; }
  /// A bind, an invalidation, a fast registration: it sends nothing.
  [[nodiscard]] bool is_local() const { return !receive && opcode >= 5; }
  /// Whether the request packet `psn` is its last.
  [[nodiscard]] bool ends_with(std::uint32_t psn) const { return started && psn == (asks() ? first_psn : last_psn); }
};
using RequestPtr = std::shared_ptr<Request>;

/// A packet, from the block that makes it to the last TLP of its payload. Times are picoseconds; 0: has not happened.
struct Packet {
  std::uint64_t id{};
  unsigned host{};
  std::uint8_t qp{};
  bool responder{};
  std::uint8_t opcode{};
  std::uint32_t psn{}, dest_qpn{}, length{};
  std::uint64_t made{}, taken{}, translated{}, gathered{}, wire_start{}, wire_end{}, checked{}, placed{};
  unsigned tlb_misses{};
  bool repeated{}, dropped{}, lost{}, fault{}, receiving{};
  RxReason reason{};
  std::uint64_t frame{};          ///< Its number in a capture of the wire, from 1 on; 0: it has not left
  std::uint8_t syndrome{};        ///< AETH, as it was received
  std::uint64_t va{};             ///< RETH or AtomicETH, as it was received
  std::uint32_t rkey{}, asked{};  ///< The same: R_Key, and bytes (DMA length)
  RequestPtr request;             ///< Whose it is; of a response the one that it completes
  TraceFile::Track tx{}, wire{}, rx{};
  unsigned tx_lane{}, rx_lane{}, receiver{};
  std::uint64_t answers{};  ///< Packet whose execution made a response, or 0
  TraceFile::Track answers_track{};
  std::uint64_t answers_at{};

  [[nodiscard]] PacketTimes times() const { return {taken, translated, gathered, wire_start, wire_end}; }
};
using PacketPtr = std::shared_ptr<Packet>;

}  // namespace rnic::testbench
