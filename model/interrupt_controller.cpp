#include "model/interrupt_controller.hpp"

#include <utility>

#include "model/timed_event.hpp"

namespace rnic::model {

InterruptController::InterruptController(std::size_t vectors) : lines_(vectors) {}

void InterruptController::signal(std::uint32_t message_data) {
  if (message_data >= lines_.size()) {
    ++spurious_;
    return;
  }
  ++lines_[message_data].count;
  lines_[message_data].event.notify();
  wake();
}

void InterruptController::wake() {
  ++wake_count_;
  woken_.notify();
}

bool InterruptController::wait_for_wake(std::uint64_t seen) {
  while (wake_count_ == seen) sc_core::wait(woken_);
  return true;
}

bool InterruptController::wait_for_wake(std::uint64_t seen, const sc_core::sc_time& timeout) {
  const Picoseconds end = time_in(timeout.value());
  while (wake_count_ == seen && now_ps() < end) wait_until(end, woken_);
  return wake_count_ != seen;
}

bool InterruptController::take(std::uint32_t vector) {
  Line& line = lines_.at(vector);
  return std::exchange(line.seen, line.count) != line.count;
}

bool InterruptController::wait(std::uint32_t vector, const sc_core::sc_time& timeout) {
  if (take(vector)) return true;
  Line& line = lines_[vector];
  const std::uint64_t before = line.count;
  const Picoseconds end = time_in(timeout.value());
  while (line.count == before && now_ps() < end) wait_until(end, line.event);
  if (line.count == before) return false;
  line.seen = line.count;
  return true;
}

void InterruptController::clear() {
  for (Line& line : lines_) {
    line.count = 0;
    line.seen = 0;
  }
  spurious_ = 0;
}

}  // namespace rnic::model
