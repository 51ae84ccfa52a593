#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/ethernet.hpp"
#include "model/time.hpp"
#include "model/wire_fault_injector.hpp"

namespace rnic::model {

/// The far end of one direction of the wire: what is on its way to the receiver, beat by beat, and frames that are held
/// so that later ones pass. A held frame goes on when its frames have passed or its time is over, so none is lost.
///
/// Everything happens in the order of its time, however often receive is called.
class FrameLine {
 public:
  explicit FrameLine(double ps_per_byte) : ps_per_byte_(ps_per_byte), beat_time_(duration(kBeatBytes)) {}

  /// Bytes on the wire, in time.
  [[nodiscard]] Picoseconds duration(std::size_t bytes) const;
  /// From the first bit of the preamble of a frame to its last bit.
  [[nodiscard]] Picoseconds frame_duration(std::size_t bytes) const;

  /// Calls `take` with the time of each beat of a frame, the frame check sequence behind the last.
  template <typename Take>
  void for_each_beat_time(std::size_t bytes, Take take) const {
    for (; bytes > kBeatBytes; bytes -= kBeatBytes) take(beat_time_);
    take(duration(bytes + kFcsBytes));
  }

  /// A beat whose last byte arrives at `due`, not before that of an earlier beat.
  void push_beat(const FrameBeat& beat, Picoseconds due);
  /// A frame as `fate` says (not a dropped one), with its copy. Its preamble arrives at `start` or, if the line is
  /// busy, after that; `start` never goes back.
  void push_frame(const std::vector<std::uint8_t>& bytes, const FrameFate& fate, Picoseconds start);
  /// A whole frame; `dues`: when each of its beats arrives, as of push_beat.
  void push_whole(std::vector<std::uint8_t> bytes, bool bad, std::vector<Picoseconds> dues);
  /// The next beat that has arrived by `now`. False: there is none.
  bool receive(FrameBeat& beat, Picoseconds now);
  /// What is left of the oldest frame, when its last beat has arrived by `now`. False: there is none.
  bool receive_frame(std::vector<std::uint8_t>& bytes, bool& bad, Picoseconds now);
  /// When receive can give a beat, or a held frame goes on, at the earliest. Nothing: none is under way.
  [[nodiscard]] std::optional<Picoseconds> next_beat() const;
  /// When receive can give the last beat of a frame, or a held frame goes on, at the earliest. Nothing: no frame is
  /// under way.
  [[nodiscard]] std::optional<Picoseconds> next_frame() const;

  /// Frames that have been pushed (or held, or copied), and not been received whole.
  [[nodiscard]] std::uint64_t under_way() const { return pushed_ + held_.size() - delivered_; }
  /// Frames received whole.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }

 private:
  /// A frame, or the beats of it that have been pushed.
  struct Arriving {
    std::vector<std::uint8_t> bytes{};
    std::vector<Picoseconds> dues{};  ///< Of its beats
    bool whole = false, bad = false;
    std::size_t given = 0;  ///< Beats
  };
  struct Held {
    std::vector<std::uint8_t> bytes;
    bool bad;
    std::uint32_t frames;  ///< That must still pass
    Picoseconds until;
  };

  void send(const std::vector<std::uint8_t>& bytes, bool bad, Picoseconds start);
  void release_until(Picoseconds time);
  void count_passing();

  double ps_per_byte_;
  Picoseconds beat_time_;    ///< Of a full one
  Picoseconds free_at_ = 0;  ///< When the line can take the next preamble
  std::deque<Arriving> arriving_;
  std::vector<Held> held_;  ///< In the order they came
  std::uint64_t pushed_ = 0;
  std::uint64_t delivered_ = 0;
};

}  // namespace rnic::model
