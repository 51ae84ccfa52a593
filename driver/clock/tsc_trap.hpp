#pragma once

namespace rnic::clock {

/// From now on the processor's counter (rdtsc, rdtscp) traps in this thread, and in those that it starts, and tells
/// simulated time (ProgramClock::ticks). Not in a program of Go, whose runtime takes SIGSEGV for itself, nor on a
/// processor that is none of x86.
void trap_counter();

/// A program that this thread starts meanwhile finds the counter as the processor has it: its loader reads it before
/// it has this library, and a program without the C library never has it.
class CounterFree {
 public:
  CounterFree();
  CounterFree(const CounterFree&) = delete;
  CounterFree& operator=(const CounterFree&) = delete;
  ~CounterFree();

 private:
  int before_ = 0;
};

}  // namespace rnic::clock
