#pragma once

#include "driver/result.hpp"

namespace rnic::verbs {

/// A descriptor of a program's own that poll finds readable while one of several others is. Whether it blocks is its
/// own affair: the program says so with fcntl, and nobody else hears of it.
class WaitDescriptor {
 public:
  WaitDescriptor() = default;
  WaitDescriptor(const WaitDescriptor&) = delete;
  WaitDescriptor& operator=(const WaitDescriptor&) = delete;
  ~WaitDescriptor();

  /// Errors: kOutOfResources.
  [[nodiscard]] Result<void> open();
  /// Closes `other` with itself. Errors: kOutOfResources.
  [[nodiscard]] Result<void> add(int other);
  [[nodiscard]] int get() const { return epoll_; }
  /// Waits until it is readable, as `read` does: it is a cancellation point, and goes on behind a signal handler with
  /// SA_RESTART. An errno: EAGAIN (the program has asked not to block), EINTR (a handler without).
  [[nodiscard]] int wait() const;

 private:
  int epoll_ = -1;
  int others_[2] = {-1, -1};
};

}  // namespace rnic::verbs
