#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rnic::model {

/// What can happen to a frame on the wire.
enum class WireFault : std::uint8_t {
  kDrop,       ///< It never arrives
  kDuplicate,  ///< It arrives twice
  kReorder,    ///< Later frames arrive before it
  kCorrupt,    ///< Some of its bits are inverted
  kDelay,      ///< It, and everything behind it, arrives later
  kTruncate,   ///< Its end is missing
  kEcn,        ///< A switch marks it: Congestion Experienced
};
inline constexpr std::size_t kWireFaults = 7;
/// As in scenario files: "drop", "duplicate" and so on.
[[nodiscard]] const char* name(WireFault fault);

/// How much of it. A fault that comes by chance takes a random amount from 1 to what is said here where a range is
/// given; one that comes by rule takes exactly this.
struct WireFaultParameters {
  std::uint32_t reorder_frames = 3;    ///< Reorder: so many later frames (from 1) pass first
  std::uint32_t duplicate_frames = 0;  ///< Duplicate: so many later frames (from 0) arrive before the copy
  double reorder_hold_ns = 10'000;     ///< Reorder: longest time to wait for these frames
  double duplicate_hold_ns = 10'000;   ///< Duplicate: the same
  std::uint32_t corrupt_bits = 1;      ///< Corrupt: bits inverted (from 1), at random places
  std::optional<std::uint32_t>
      corrupt_bit{};       ///< Corrupt: this bit instead: 8 * byte + bit; none when the frame is shorter
  double delay_ns = 1000;  ///< Delay: extra time (from 0)
  std::optional<std::uint32_t>
      truncate_bytes{};  ///< Truncate: bytes that are left; nothing: random. Longer than the frame: whole
  /// The frame check sequence shows it, so the MAC of the receiver marks the frame bad, as for a bit error on a cable.
  /// Otherwise it is right again, as after an error inside a switch: only checksum and ICRC can tell.
  bool corrupt_bad_fcs = false;
  bool truncate_bad_fcs = false;
  bool only_ect = false;  ///< ECN: only frames of ECN-capable senders, as real switches do (RFC 3168)
};

/// Which frames a rule is about. Conditions that are not set hold for every frame; the others only for RoCEv2 packets.
struct FrameMatch {
  std::optional<std::uint8_t> opcode{};  ///< BTH opcode
  std::optional<std::uint32_t> dest_qpn{};
  std::optional<std::uint32_t> psn{};
  bool spare_injected = false;  ///< Not those of Wire::inject, which are not counted either
};

/// A fault for exact frames: of those that match, in the order they are sent, number `nth` (from 1) and the `count` - 1
/// after it; each of them with a chance.
struct WireRule {
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  WireFault fault = WireFault::kDrop;
  FrameMatch match;
  std::uint64_t nth = 1;
  std::uint64_t count = 1;  ///< kAll: without end
  double probability = 1;
  WireFaultParameters parameters{};
};

/// Faults of one direction: the chance of each for each frame, and rules. Every kind of fault has a random generator of
/// its own, so that one more fault of one kind does not change which frames the others hit.
///
/// Several may hit one frame; a dropped one suffers nothing else.
struct WireFaultOptions {
  double drop = 0, duplicate = 0, reorder = 0, corrupt = 0, delay = 0, truncate = 0, ecn = 0;
  WireFaultParameters parameters;  ///< Of the faults by chance
  std::vector<WireRule> rules;

  [[nodiscard]] double chance(WireFault fault) const;
};

/// Throws std::invalid_argument, naming what is out of range.
void check(const WireFaultParameters& parameters);
void check(const WireRule& rule);
void check(const WireFaultOptions& options);

/// How often each fault has hit, by WireFault.
using WireFaultCounts = std::array<std::uint64_t, kWireFaults>;

}  // namespace rnic::model
