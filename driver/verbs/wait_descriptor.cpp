#include "driver/verbs/wait_descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

namespace rnic::verbs {

WaitDescriptor::~WaitDescriptor() {
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
  pollfd what{.fd = epoll_, .events = POLLIN, .revents = 0};
  return poll(&what, 1, -1) < 0 ? errno : 0;
}

}  // namespace rnic::verbs
