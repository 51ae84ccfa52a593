#include "testbench/server/poller.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

namespace rnic::testbench {
namespace {

[[noreturn]] void poller_failed(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) poller_failed("epoll_create1");
}

Poller::Watch Poller::add(int descriptor, bool both_ways, std::function<void()> called) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
  if (both_ways) event.events |= EPOLLOUT;
  event.data.u64 = ++last_;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) poller_failed("epoll_ctl");
  watches_.emplace(last_, std::move(called));
  return last_;
}

void Poller::remove(int descriptor, Watch watch) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  watches_.erase(watch);
}

void Poller::take(std::optional<std::uint64_t> timeout_ns) {
  std::array<epoll_event, 64> events;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  timespec limit{};
  if (timeout_ns) limit = {static_cast<time_t>(*timeout_ns / kSecond), static_cast<long>(*timeout_ns % kSecond)};
  const int count = epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 timeout_ns ? &limit : nullptr, nullptr);
  if (count < 0 && errno != EINTR) poller_failed("epoll_pwait2");
  for (int i = 0; i < count; ++i) {
    // One that was removed by those before it is not called; a copy, for it may remove itself.
    const auto found = watches_.find(events[static_cast<std::size_t>(i)].data.u64);
    if (found == watches_.end()) continue;
    const auto readable = found->second;
    readable();
  }
}

}  // namespace rnic::testbench
