#include "model/wire.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rnic::model {

Wire::Wire(const sc_core::sc_module_name& name, const WireOptions& options)
    : sc_module(name),
      directions_{WireDirection(0, options), WireDirection(1, options)},
      ports_{Port(*this, 0), Port(*this, 1)} {
  SC_HAS_PROCESS(Wire);
  SC_METHOD(report);
  sensitive << report_event_.event();
  dont_initialize();
  SC_METHOD(arrive);
  sensitive << arrive_event_.event();
  dont_initialize();
}

void Wire::reset(const WireOptions& options) {
  directions_ = {WireDirection(0, options), WireDirection(1, options)};
  for (auto& port : ports_) port.reset();
  for (auto& queue : records_) queue.clear();
  for (auto& queue : injected_) queue.clear();
  report_event_.cancel();
  arrive_event_.cancel();
  link_up_ = true;
  losing_ = {};
  lost_ = {};
}

bool Wire::Port::receive(FrameBeat& beat) {
  if (!wire_.directions_[1 - index_].receive(beat, now_ps())) return false;
  if (ears_.empty()) return true;
  heard_.insert(heard_.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
  if (!beat.last) return true;
  const auto frame = std::exchange(heard_, {});
  if (!beat.err) ears_(frame);
  return true;
}

bool Wire::Port::receive_frame(std::vector<std::uint8_t>& bytes, bool& bad) {
  if (!wire_.directions_[1 - index_].receive_frame(bytes, bad, now_ps())) return false;
  if (ears_.empty()) return true;
  heard_.insert(heard_.end(), bytes.begin(), bytes.end());
  const auto frame = std::exchange(heard_, {});
  if (!bad) ears_(frame);
  return true;
}

void Wire::inject(std::size_t from, std::span<const std::uint8_t> frame, bool bad) {
  if (frame.empty()) throw std::invalid_argument("an empty frame");
  if (!injections_.at(from).empty()) {
    std::vector<std::uint8_t> padded(frame.begin(), frame.end());
    padded.resize(std::max(padded.size(), kMinFrameBytes));
    injections_[from](padded);
  }
  send_injected(from, frame, bad);
}

void Wire::send_injected(std::size_t from, std::span<const std::uint8_t> frame, bool bad) {
  if (directions_.at(from).in_frame()) return injected_[from].push_back({{frame.begin(), frame.end()}, bad});
  sent(from, directions_[from].transmit_frame(frame, bad, now_ps(), true));
}

void Wire::set_link(bool up) {
  if (link_up_ == up) return;
  link_up_ = up;
  for (const auto& port : ports_) port.changed();
  for (auto* const listener : listeners_) {
    if (listener != nullptr) listener->link_changed();
  }
}

void Wire::transmit(std::size_t from, const FrameBeat& beat) {
  if (losing_.at(from) || (!link_up_ && !directions_[from].in_frame())) {
    losing_[from] = !beat.last;
    return lose(from, std::span(beat.data).first(beat.bytes), beat.last, beat.err);
  }
  sent(from, directions_[from].transmit(beat, now_ps()));
  if (beat.last) send_waiting(from);
}

void Wire::transmit_frame(std::size_t from, std::span<const std::uint8_t> frame) {
  if (!link_up_) return lose(from, frame, true, false);
  sent(from, directions_.at(from).transmit_frame(frame, false, now_ps()));
  send_waiting(from);
}

void Wire::lose(std::size_t from, std::span<const std::uint8_t> bytes, bool last, bool bad) {
  if (losses_.at(from).empty()) return;
  lost_[from].insert(lost_[from].end(), bytes.begin(), bytes.end());
  if (!last) return;
  auto frame = std::exchange(lost_[from], {});
  frame.resize(std::max(frame.size(), kMinFrameBytes));
  if (!bad) losses_[from](frame);
}

void Wire::send_waiting(std::size_t from) {
  if (injected_[from].empty()) return;
  auto waiting = std::move(injected_[from]);
  injected_[from].clear();
  for (const auto& frame : waiting) send_injected(from, frame.bytes, frame.bad);
}

/// Something is under way; the frame that has ended with it, if one has.
void Wire::sent(std::size_t from, std::optional<FrameRecord> record) {
  ports_[1 - from].pushed();
  if (!record) return;
  if (listeners_[1 - from] != nullptr) expect_frame(from);
  if (!tap_) return;
  report_event_.notify_at(record->end);  // keeps the earliest of several
  records_[from].push_back(std::move(*record));
}

void Wire::report() {
  const Picoseconds now = now_ps();
  for (;;) {
    const auto end = [&](std::size_t i) { return records_[i].empty() ? ~Picoseconds{0} : records_[i].front().end; };
    const std::size_t next = end(1) < end(0) ? 1 : 0;
    if (records_[next].empty()) return;
    if (end(next) > now) return report_event_.notify_at(end(next));
    const FrameRecord record = std::move(records_[next].front());
    records_[next].pop_front();
    if (tap_) tap_(record);
  }
}

void Wire::expect_frame(std::size_t from) {
  const auto next = directions_[from].next_frame();
  // Keeps the earliest of several.
  if (next) arrive_event_.notify_at(std::max(*next, now_ps()));
}

void Wire::arrive() {
  for (std::size_t at = 0; at < 2; ++at) {
    if (listeners_[at] == nullptr) continue;
    const auto next = directions_[1 - at].next_frame();
    if (next && *next <= now_ps()) listeners_[at]->frame_came();
    expect_frame(1 - at);
  }
}

}  // namespace rnic::model
