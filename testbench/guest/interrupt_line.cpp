#include "testbench/guest/interrupt_line.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "testbench/guest/guest_link_error.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kLongestAnswer = 256;

}  // namespace

void InterruptLine::raise(std::uint64_t address, std::uint32_t data) {
  const Message message{address, data};
  if (std::find(waiting_.begin(), waiting_.end(), message) == waiting_.end()) waiting_.push_back(message);
  if (waiting_.size() > kMostWaiting) throw GuestLinkError("the guest takes no interrupts, and too many wait");
  // Who has ended is seen by tend.
  if (connected()) static_cast<void>(send());
}

bool InterruptLine::tend() { return !connected() || (hear() && send()); }

bool InterruptLine::hear() {
  for (;;) {
    std::array<char, 1024> piece;
    const ssize_t got = recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) return false;
    for (const char character : std::string_view(piece.data(), static_cast<std::size_t>(got))) {
      if (character != '\n') {
        if (line_.size() < kLongestAnswer) line_ += character;
        continue;
      }
      if (line_ != "OK" || unanswered_ == 0)
        throw GuestLinkError(fmt::format("an interrupt is answered with '{}'", line_));
      --unanswered_;
      line_.clear();
    }
  }
}

bool InterruptLine::send() {
  for (;;) {
    if (output_.empty()) {
      if (waiting_.empty() || unanswered_ == kMostUnanswered) return true;
      output_ = fmt::format("writel {:#x} {:#x}\n", waiting_.front().address, waiting_.front().data);
      waiting_.pop_front();
      ++unanswered_;
    }
    const ssize_t sent = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (sent <= 0) return false;
    output_.erase(0, static_cast<std::size_t>(sent));
  }
}

}  // namespace rnic::testbench
