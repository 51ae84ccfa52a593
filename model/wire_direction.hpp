#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/ethernet.hpp"
#include "model/frame_line.hpp"
#include "model/random.hpp"
#include "model/time.hpp"
#include "model/wire_fault_injector.hpp"
#include "model/wire_faults.hpp"

namespace rnic::model {

struct WireOptions {
  double rate_gbps = 100;                    ///< 10^9 bits per second, of the data bits
  double delay_ns = 0;                       ///< From the last bit sent to the last bit received
  std::array<WireFaultOptions, 2> faults{};  ///< By the port that sends
  std::uint64_t seed = 1;                    ///< Of the faults and the jitter
  double jitter_ns = 0;                      ///< Every frame takes up to this longer; their order stays
};

/// A frame that has left a port.
struct FrameRecord {
  std::size_t from{};               ///< Port that sent it
  Picoseconds start{};              ///< First bit of the preamble
  Picoseconds end{};                ///< Last bit of the frame check sequence
  std::vector<std::uint8_t> bytes;  ///< As sent: padded, without frame check sequence
  bool bad{};                       ///< Sent with a wrong frame check sequence
  std::uint8_t faults{};            ///< Bit i: WireFault i hits it on its way
  bool injected{};                  ///< By Wire::inject, not by the NIC
};

struct WireStatistics {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;       ///< Without frame check sequence
  std::uint64_t bad_frames = 0;  ///< Of the NIC; those of Wire::inject are meant so
  std::uint64_t underruns = 0;   ///< Beats that came too late to follow the one before without a gap
  Picoseconds first_start = 0;   ///< Of the first frame
  Picoseconds last_end = 0;      ///< Of the last frame
};

/// One direction of the wire, with the MAC at each end: preamble, padding to the smallest frame, frame check sequence
/// and inter-frame gap take their time (IEEE 802.3 clauses 3.1.1, 4.2.3.3, 4.4.2). Frames stream: a beat arrives when
/// its last byte does, the last one after the frame check sequence.
///
/// Where faults are on, a frame is judged when it has left the port whole. If the delay of the wire is longer than the
/// frame, frames that suffer nothing arrive at the same times as without faults; otherwise as through a
/// store-and-forward switch, whose first bit of a frame leaves when its last one has come.
class WireDirection {
 public:
  /// Throws std::invalid_argument when an option is out of range.
  WireDirection(std::size_t from, const WireOptions& options);

  /// Adds a fault for frames that start from now on. Throws std::invalid_argument when it is out of range.
  void arm(const WireRule& rule) { injector_.arm(rule); }

  [[nodiscard]] bool can_transmit(Picoseconds now) const { return transmits_from() <= now; }
  /// When can_transmit is true at the earliest.
  [[nodiscard]] Picoseconds transmits_from() const { return position_ - std::min(position_, buffer_); }
  /// When all that was accepted has left, and the gap behind it.
  [[nodiscard]] Picoseconds free_at() const { return position_; }
  /// The last beat accepted was not the last of its frame.
  [[nodiscard]] bool in_frame() const { return in_frame_; }
  /// Accepts a beat; the last of a frame returns the frame. `injected`: of a frame of Wire::inject.
  std::optional<FrameRecord> transmit(const FrameBeat& beat, Picoseconds now, bool injected = false);
  /// Accepts a whole frame, between two others.
  FrameRecord transmit_frame(std::span<const std::uint8_t> bytes, bool bad, Picoseconds now, bool injected = false);
  /// The next beat that has arrived by `now`. False: there is none.
  bool receive(FrameBeat& beat, Picoseconds now) { return line_.receive(beat, now); }
  bool receive_frame(std::vector<std::uint8_t>& bytes, bool& bad, Picoseconds now) {
    return line_.receive_frame(bytes, bad, now);
  }
  /// As of FrameLine.
  [[nodiscard]] std::optional<Picoseconds> next_beat() const { return line_.next_beat(); }
  [[nodiscard]] std::optional<Picoseconds> next_frame() const { return line_.next_frame(); }

  [[nodiscard]] const WireStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const WireFaultCounts& faults() const { return injector_.counts(); }
  /// Whole frames received; with those that are under way (sent, held, delayed or copied, not received yet) and those
  /// dropped, they are the frames sent and their copies.
  [[nodiscard]] std::uint64_t delivered() const { return line_.delivered(); }
  [[nodiscard]] std::uint64_t under_way() const { return line_.under_way(); }

 private:
  void begin(Picoseconds now, bool injected);
  FrameRecord end(bool bad);
  void judge();

  std::size_t from_;
  FrameLine line_;
  WireFaultInjector injector_;
  Picoseconds delay_;
  Picoseconds jitter_;
  Random random_;             ///< Of the jitter
  Picoseconds buffer_;        ///< How far ahead of the wire the MAC accepts beats
  Picoseconds position_ = 0;  ///< When all that was accepted has left, inter-frame gap included
  FrameRecord frame_;         ///< Under way
  bool in_frame_ = false;
  Picoseconds last_start_ = 0;  ///< At the far end, of the newest frame that was judged
  bool judged_ = false;         ///< The frame under way waits for its end
  WireStatistics statistics_;
};

}  // namespace rnic::model
