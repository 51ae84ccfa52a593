#include "driver/verbs/wait_descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "driver/unnoticed.hpp"

namespace rnic::verbs {
namespace {

/// Holds back from its thread, as long as it is, the signals whose handlers let a call go on (SA_RESTART). poll never
/// goes on behind a handler: it finds this readable when one of them has arrived. What it says of an interruption is
/// then of a handler without the flag.
class HeldSignals {
 public:
  HeldSignals() {
    pthread_sigmask(SIG_BLOCK, nullptr, &before_);
    sigset_t held;
    if (!find(held)) return;
    number_ = signalfd(-1, &held, SFD_CLOEXEC);
    if (number_ >= 0) pthread_sigmask(SIG_BLOCK, &held, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  /// Their handlers run.
  ~HeldSignals() {
    if (number_ < 0) return;
    {
      const Unnoticed unnoticed;
      close(number_);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// -1: there are none.
  [[nodiscard]] int get() const { return number_; }

 private:
  /// Those that the program holds back itself stay out.
  bool find(sigset_t& held) const {
    bool found = false;
    sigemptyset(&held);
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
      if (sigismember(&before_, signal) != 0) continue;
      struct sigaction action {};
      if (sigaction(signal, nullptr, &action) != 0 || (action.sa_flags & SA_RESTART) == 0) continue;
      if ((action.sa_flags & SA_SIGINFO) == 0 && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN))
        continue;
      sigaddset(&held, signal);
      found = true;
    }
    return found;
  }

  int number_ = -1;
  sigset_t before_{};
};

}  // namespace

WaitDescriptor::~WaitDescriptor() {
  const Unnoticed unnoticed;
  for (const int descriptor : {epoll_, others_[0], others_[1]}) {
    if (descriptor >= 0) close(descriptor);
  }
}

Result<void> WaitDescriptor::open() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  return epoll_ >= 0 ? Result<void>() : Error::kOutOfResources;
}

Result<void> WaitDescriptor::add(int other) {
  (others_[0] < 0 ? others_[0] : others_[1]) = other;
  epoll_event what{};
  what.events = EPOLLIN;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, other, &what) == 0 ? Result<void>() : Error::kOutOfResources;
}

int WaitDescriptor::wait() const {
  const int flags = fcntl(epoll_, F_GETFL);
  if (flags < 0) return errno;
  if ((flags & O_NONBLOCK) != 0) return EAGAIN;
  for (;;) {
    const HeldSignals held;
    std::array<pollfd, 2> what{
        {{.fd = epoll_, .events = POLLIN, .revents = 0}, {.fd = held.get(), .events = POLLIN, .revents = 0}}};
    if (poll(what.data(), what.size(), -1) < 0) return errno;
    if (what[0].revents != 0) return 0;
  }
}

}  // namespace rnic::verbs
