#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/ethernet.hpp"
#include "model/time.hpp"

namespace rnic::model {

struct WireOptions {
  double rate_gbps = 100;  ///< 10^9 bits per second, of the data bits
  double delay_ns = 0;     ///< From the last bit sent to the last bit received
};

/// A frame that has left a port.
struct FrameRecord {
  std::size_t from{};               ///< Port that sent it
  Picoseconds start{};              ///< First bit of the preamble
  Picoseconds end{};                ///< Last bit of the frame check sequence
  std::vector<std::uint8_t> bytes;  ///< Padded, without frame check sequence
  bool bad{};                       ///< Sent with a wrong frame check sequence
};

struct WireStatistics {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;       ///< Without frame check sequence
  std::uint64_t bad_frames = 0;
  std::uint64_t underruns = 0;   ///< Beats that came too late to follow the one before without a gap
  Picoseconds first_start = 0;   ///< Of the first frame
  Picoseconds last_end = 0;      ///< Of the last frame
};

/// One direction of the wire, with the MAC at each end: preamble, padding to the smallest frame, frame check sequence and
/// inter-frame gap take their time (IEEE 802.3 clauses 3.1.1, 4.2.3.3, 4.4.2). Frames stream: a beat arrives when its last byte
/// does, the last one after the frame check sequence.
class WireDirection {
 public:
  /// Throws std::invalid_argument when an option is out of range.
  WireDirection(std::size_t from, const WireOptions& options);

  [[nodiscard]] bool can_transmit(Picoseconds now) const { return position_ <= now + buffer_; }
  /// The last beat accepted was not the last of its frame.
  [[nodiscard]] bool in_frame() const { return in_frame_; }
  /// Accepts a beat; the last of a frame returns the frame.
  std::optional<FrameRecord> transmit(const FrameBeat& beat, Picoseconds now);
  /// The next beat that has arrived by `now`. False: there is none.
  bool receive(FrameBeat& beat, Picoseconds now);
  [[nodiscard]] const WireStatistics& statistics() const { return statistics_; }

 private:
  struct Arriving {
    Picoseconds due;
    FrameBeat beat;
  };
  [[nodiscard]] Picoseconds duration(std::size_t bytes) const;

  std::size_t from_;
  double ps_per_byte_;
  Picoseconds delay_;
  Picoseconds buffer_;        ///< How far ahead of the wire the MAC accepts beats
  Picoseconds position_ = 0;  ///< When all that was accepted has left, inter-frame gap included
  FrameRecord frame_;         ///< Under way
  bool in_frame_ = false;
  std::deque<Arriving> arriving_;
  WireStatistics statistics_;
};

}  // namespace rnic::model
