#include "model/wire_direction.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace rnic::model {
namespace {

/// Transmit buffer of the MAC: two beats hide the round trip of the ready signal.
constexpr std::size_t kBufferBytes = 2 * kBeatBytes;

const WireOptions& checked(const WireOptions& options) {
  if (!(options.rate_gbps > 0)) throw std::invalid_argument("rate_gbps is not positive");
  if (!(options.jitter_ns >= 0)) throw std::invalid_argument("jitter_ns is negative");
  if (!(options.delay_ns >= 0)) throw std::invalid_argument("delay_ns is negative");
  return options;
}

}  // namespace

WireDirection::WireDirection(std::size_t from, const WireOptions& options)
    : from_(from),
      line_(8000 / checked(options).rate_gbps),
      injector_(options.faults.at(from), options.seed, from),
      delay_(from_ns(options.delay_ns)),
      jitter_(from_ns(options.jitter_ns)),
      random_(options.seed, "wire/jitter" + std::to_string(from)),
      buffer_(line_.duration(kBufferBytes)) {}

std::optional<FrameRecord> WireDirection::transmit(const FrameBeat& beat, Picoseconds now, bool injected) {
  if (beat.bytes == 0 || beat.bytes > kBeatBytes || (beat.bytes < kBeatBytes && !beat.last)) {
    throw std::invalid_argument("frame beat is neither full nor the last");
  }
  if (!in_frame_) {
    begin(now, injected);
  } else if (now > position_) {
    ++statistics_.underruns;
    position_ = now;
  }
  FrameBeat sent = beat;
  if (beat.last)
    sent.bytes =
        static_cast<std::uint8_t>(std::max<std::size_t>(beat.bytes, frame_.bytes.empty() ? kMinFrameBytes : 0));
  std::fill(sent.data.begin() + beat.bytes, sent.data.end(), std::uint8_t{0});
  frame_.bytes.insert(frame_.bytes.end(), sent.data.begin(), sent.data.begin() + sent.bytes);
  position_ += line_.duration(sent.bytes + (beat.last ? kFcsBytes : 0));
  if (!judged_) line_.push_beat(sent, position_ + delay_);
  if (!beat.last) return std::nullopt;
  return end(beat.err);
}

FrameRecord WireDirection::transmit_frame(std::span<const std::uint8_t> bytes, bool bad, Picoseconds now,
                                          bool injected) {
  begin(now, injected);
  frame_.bytes.assign(bytes.begin(), bytes.end());
  frame_.bytes.resize(std::max(bytes.size(), kMinFrameBytes));
  std::vector<Picoseconds> dues;
  dues.reserve(bytes.size() / kBeatBytes + 1);
  line_.for_each_beat_time(frame_.bytes.size(),
                           [&](Picoseconds time) { dues.push_back((position_ += time) + delay_); });
  if (!judged_) line_.push_whole(frame_.bytes, bad, std::move(dues));
  return end(bad);
}

void WireDirection::begin(Picoseconds now, bool injected) {
  frame_ = FrameRecord{from_, std::max(position_, now), 0, {}, false};
  frame_.injected = injected;
  position_ = frame_.start + line_.duration(kPreambleBytes);
  in_frame_ = true;
  judged_ = injector_.active() || jitter_ != 0;
}

FrameRecord WireDirection::end(bool bad) {
  in_frame_ = false;
  frame_.end = position_;
  frame_.bad = bad;
  position_ += line_.duration(kInterFrameGapBytes);
  if (statistics_.frames++ == 0) statistics_.first_start = frame_.start;
  statistics_.bytes += frame_.bytes.size();
  statistics_.bad_frames += frame_.bad && !frame_.injected;
  statistics_.last_end = frame_.end;
  if (judged_) judge();
  return std::move(frame_);
}

void WireDirection::judge() {
  // Without a gap inside the frame this is its start, and the delay.
  const Picoseconds start = frame_.end - line_.frame_duration(frame_.bytes.size()) + delay_;
  std::vector<std::uint8_t> bytes = frame_.bytes;
  FrameFate fate = injector_.judge(bytes, frame_.injected);
  fate.bad = fate.bad || frame_.bad;
  frame_.faults = fate.faults;
  last_start_ = std::max({last_start_, start + random_.below(jitter_ + 1), frame_.end});
  if (!fate.dropped) line_.push_frame(bytes, fate, last_start_);
}

}  // namespace rnic::model
