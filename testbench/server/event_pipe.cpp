#include "testbench/server/event_pipe.hpp"

#include <fcntl.h>

#include <array>
#include <string>
#include <utility>

namespace rnic::testbench {

Result<std::unique_ptr<EventPipe>> EventPipe::open(std::shared_ptr<kmd::EventChannel> channel) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return Error::kOutOfResources;
  remote::Descriptor read_end(ends[0]), write_end(ends[1]);
  const std::string again = "/proc/self/fd/" + std::to_string(ends[0]);
  remote::Descriptor own(::open(again.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!own) return Error::kOutOfResources;
  return std::unique_ptr<EventPipe>(
      new EventPipe(std::move(channel), std::move(read_end), std::move(own), std::move(write_end)));
}

EventPipe::EventPipe(std::shared_ptr<kmd::EventChannel> channel, remote::Descriptor read_end,
                     remote::Descriptor own_read_end, remote::Descriptor write_end)
    : channel_(std::move(channel)),
      read_end_(std::move(read_end)),
      own_read_end_(std::move(own_read_end)),
      write_end_(std::move(write_end)) {
  channel_->listen([this](bool events) { set(events); });
}

EventPipe::~EventPipe() { channel_->listen({}); }

void EventPipe::set(bool events) {
  if (std::exchange(readable_, events) == events) return;
  char byte = 0;
  // A process that has read what it should only poll finds its events later, by itself.
  if (events) {
    static_cast<void>(write(write_end_.get(), &byte, sizeof byte) == 0);
  } else {
    static_cast<void>(read(own_read_end_.get(), &byte, sizeof byte) == 0);
  }
}

}  // namespace rnic::testbench
