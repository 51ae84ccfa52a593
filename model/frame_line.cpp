#include "model/frame_line.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rnic::model {

Picoseconds FrameLine::duration(std::size_t bytes) const {
  return static_cast<Picoseconds>(std::llround(static_cast<double>(bytes) * ps_per_byte_));
}

Picoseconds FrameLine::frame_duration(std::size_t bytes) const {
  // Beat by beat, because each is rounded by itself.
  Picoseconds time = duration(kPreambleBytes);
  for (; bytes > kBeatBytes; bytes -= kBeatBytes) time += duration(kBeatBytes);
  return time + duration(bytes + kFcsBytes);
}

void FrameLine::push_beat(const FrameBeat& beat, Picoseconds due) {
  arriving_.push_back({due, beat});
  if (!beat.last) return;
  ends_.push_back(due);
  ++pushed_;
  free_at_ = due + duration(kInterFrameGapBytes);
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
  if (arriving_.empty() || arriving_.front().due > now) return false;
  beat = arriving_.front().beat;
  arriving_.pop_front();
  if (beat.last) ends_.pop_front();
  delivered_ += beat.last;
  return true;
}

std::optional<Picoseconds> FrameLine::next_beat() const {
  std::optional<Picoseconds> next;
  if (!arriving_.empty()) next = arriving_.front().due;
  for (const auto& frame : held_) next = std::min(next.value_or(frame.until), frame.until);
  return next;
}

std::optional<Picoseconds> FrameLine::next_frame() const {
  std::optional<Picoseconds> next;
  const auto sooner = [&next](Picoseconds time) { next = std::min(next.value_or(time), time); };
  if (!ends_.empty()) sooner(ends_.front());
  for (const auto& frame : held_) sooner(frame.until);
  return next;
}

void FrameLine::send(const std::vector<std::uint8_t>& bytes, bool bad, Picoseconds start) {
  Picoseconds due = std::max(start, free_at_) + duration(kPreambleBytes);
  for_each_beat(bytes, bad, [&](const FrameBeat& beat) {
    due += duration(beat.bytes + (beat.last ? kFcsBytes : 0));
    push_beat(beat, due);
  });
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
