#pragma once

#include <pthread.h>

#include <cerrno>

// Calls of the system that the program has not made: those by which a library reaches what is memory and registers
// where there is hardware. The program reckons with none of them.

namespace rnic {

/// While it is, its thread cannot be cancelled (pthread_cancel): no call of the system is a cancellation point.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }

 private:
  int before_{};
};

/// The same, and errno is afterwards what it was: a signal handler may post and poll.
class Unnoticed {
 public:
  Unnoticed() = default;
  ~Unnoticed() { errno = error_; }

 private:
  const int error_ = errno;
  const Uncancelled uncancelled_;
};

}  // namespace rnic
