#include "model/frame_line.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace rnic::model {

Picoseconds FrameLine::duration(std::size_t bytes) const {
  return static_cast<Picoseconds>(std::llround(static_cast<double>(bytes) * ps_per_byte_));
}

Picoseconds FrameLine::frame_duration(std::size_t bytes) const {
  // Beat by beat, because each is rounded by itself.
  Picoseconds time = duration(kPreambleBytes);
  for_each_beat_time(bytes, [&time](Picoseconds beat) { time += beat; });
  return time;
}

void FrameLine::push_beat(const FrameBeat& beat, Picoseconds due) {
  if (arriving_.empty() || arriving_.back().whole) arriving_.emplace_back();
  auto& frame = arriving_.back();
  frame.bytes.insert(frame.bytes.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
  frame.dues.push_back(due);
  if (!beat.last) return;
  frame.whole = true;
  frame.bad = beat.err;
  ++pushed_;
  free_at_ = due + duration(kInterFrameGapBytes);
}

void FrameLine::push_whole(std::vector<std::uint8_t> bytes, bool bad, std::vector<Picoseconds> dues) {
  free_at_ = dues.back() + duration(kInterFrameGapBytes);
  arriving_.push_back({std::move(bytes), std::move(dues), true, bad});
  ++pushed_;
}

void FrameLine::push_frame(const std::vector<std::uint8_t>& bytes, const FrameFate& fate, Picoseconds start) {
  release_until(start);
  start += fate.delay;
  if (fate.hold) {
    held_.push_back({bytes, fate.bad, fate.hold->frames, start + fate.hold->longest});
  } else {
    send(bytes, fate.bad, start);
    count_passing();
  }
  if (!fate.copy) return;
  if (fate.copy->frames == 0 && !fate.hold) return send(bytes, fate.bad, start);
  // The copy of a held frame follows it: it is behind it in the list.
  const FrameFate::Hold& later = fate.hold && fate.hold->frames > fate.copy->frames ? *fate.hold : *fate.copy;
  held_.push_back({bytes, fate.bad, later.frames, start + later.longest});
}

bool FrameLine::receive(FrameBeat& beat, Picoseconds now) {
  if (!held_.empty()) release_until(now);
  if (arriving_.empty()) return false;
  auto& frame = arriving_.front();
  if (frame.given == frame.dues.size() || frame.dues[frame.given] > now) return false;
  const auto part = std::span(frame.bytes).subspan(frame.given++ * kBeatBytes);
  beat = {};
  beat.bytes = static_cast<std::uint8_t>(std::min(kBeatBytes, part.size()));
  std::copy_n(part.begin(), beat.bytes, beat.data.begin());
  beat.last = frame.whole && frame.given == frame.dues.size();
  beat.err = beat.last && frame.bad;
  delivered_ += beat.last;
  if (beat.last) arriving_.pop_front();
  return true;
}

bool FrameLine::receive_frame(std::vector<std::uint8_t>& bytes, bool& bad, Picoseconds now) {
  if (!held_.empty()) release_until(now);
  if (arriving_.empty() || !arriving_.front().whole || arriving_.front().dues.back() > now) return false;
  auto& frame = arriving_.front();
  bytes = std::move(frame.bytes);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(frame.given * kBeatBytes));
  bad = frame.bad;
  ++delivered_;
  arriving_.pop_front();
  return true;
}

std::optional<Picoseconds> FrameLine::next_beat() const {
  std::optional<Picoseconds> next;
  if (!arriving_.empty() && arriving_.front().given < arriving_.front().dues.size())
    next = arriving_.front().dues[arriving_.front().given];
  for (const auto& frame : held_) next = std::min(next.value_or(frame.until), frame.until);
  return next;
}

std::optional<Picoseconds> FrameLine::next_frame() const {
  std::optional<Picoseconds> next;
  const auto sooner = [&next](Picoseconds time) { next = std::min(next.value_or(time), time); };
  if (!arriving_.empty() && arriving_.front().whole) sooner(arriving_.front().dues.back());
  for (const auto& frame : held_) sooner(frame.until);
  return next;
}

void FrameLine::send(const std::vector<std::uint8_t>& bytes, bool bad, Picoseconds start) {
  Picoseconds due = std::max(start, free_at_) + duration(kPreambleBytes);
  std::vector<Picoseconds> dues;
  for_each_beat_time(bytes.size(), [&](Picoseconds time) { dues.push_back(due += time); });
  push_whole(bytes, bad, std::move(dues));
}

void FrameLine::release_until(Picoseconds time) {
  for (;;) {
    const auto next =
        std::min_element(held_.begin(), held_.end(), [](const Held& a, const Held& b) { return a.until < b.until; });
    if (next == held_.end() || next->until > time) return;
    const Held frame = std::move(*next);
    held_.erase(next);
    send(frame.bytes, frame.bad, frame.until);
  }
}

void FrameLine::count_passing() {
  for (auto& frame : held_) --frame.frames;
  // Frames that have waited long enough follow in the order they came.
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->frames != 0) {
      ++it;
      continue;
    }
    send(it->bytes, it->bad, 0);
    it = held_.erase(it);
  }
}

}  // namespace rnic::model
