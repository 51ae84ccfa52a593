#include "model/wire_direction.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace rnic::model {
namespace {

/// Transmit buffer of the MAC: two beats hide the round trip of the ready signal.
constexpr std::size_t kBufferBytes = 2 * kBeatBytes;

}  // namespace

WireDirection::WireDirection(std::size_t from, const WireOptions& options)
    : from_(from), ps_per_byte_(8000 / options.rate_gbps), delay_(from_ns(options.delay_ns)) {
  if (!(options.rate_gbps > 0)) throw std::invalid_argument("rate_gbps is not positive");
  if (!(options.delay_ns >= 0)) throw std::invalid_argument("delay_ns is negative");
  buffer_ = duration(kBufferBytes);
}

Picoseconds WireDirection::duration(std::size_t bytes) const {
  return static_cast<Picoseconds>(std::llround(static_cast<double>(bytes) * ps_per_byte_));
}

std::optional<FrameRecord> WireDirection::transmit(const FrameBeat& beat, Picoseconds now) {
  if (beat.bytes == 0 || beat.bytes > kBeatBytes || (beat.bytes < kBeatBytes && !beat.last)) {
    throw std::invalid_argument("frame beat is neither full nor the last");
  }
  if (!in_frame_) {
    frame_ = FrameRecord{from_, std::max(position_, now), 0, {}, false};
    position_ = frame_.start + duration(kPreambleBytes);
    in_frame_ = true;
  } else if (now > position_) {
    ++statistics_.underruns;
    position_ = now;
  }
  Arriving next{0, beat};
  if (beat.last) next.beat.bytes = static_cast<std::uint8_t>(std::max<std::size_t>(beat.bytes, frame_.bytes.empty() ? kMinFrameBytes : 0));
  std::fill(next.beat.data.begin() + beat.bytes, next.beat.data.end(), std::uint8_t{0});
  frame_.bytes.insert(frame_.bytes.end(), next.beat.data.begin(), next.beat.data.begin() + next.beat.bytes);
  position_ += duration(next.beat.bytes + (beat.last ? kFcsBytes : 0));
  next.due = position_ + delay_;
  arriving_.push_back(next);
  if (!beat.last) return std::nullopt;

  in_frame_ = false;
  frame_.end = position_;
  frame_.bad = beat.err;
  position_ += duration(kInterFrameGapBytes);
  if (statistics_.frames++ == 0) statistics_.first_start = frame_.start;
  statistics_.bytes += frame_.bytes.size();
  statistics_.bad_frames += frame_.bad;
  statistics_.last_end = frame_.end;
  return std::move(frame_);
}

bool WireDirection::receive(FrameBeat& beat, Picoseconds now) {
  if (arriving_.empty() || arriving_.front().due > now) return false;
  beat = arriving_.front().beat;
  arriving_.pop_front();
  return true;
}

}  // namespace rnic::model
