#pragma once

#include <memory>

#include "driver/kmd/event_channel.hpp"
#include "driver/remote/descriptor.hpp"

namespace rnic::testbench {

/// What a process is given to poll for the events of a channel: the end of a pipe, which can be read as long as events
/// wait, and which sees the end of a machine that was killed.
class EventPipe {
 public:
  /// Errors: kOutOfResources (no descriptors are free).
  static Result<std::unique_ptr<EventPipe>> open(std::shared_ptr<kmd::EventChannel> channel);
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;
  ~EventPipe();

  /// The process's end.
  [[nodiscard]] int descriptor() const { return read_end_.get(); }

 private:
  EventPipe(std::shared_ptr<kmd::EventChannel> channel, remote::Descriptor read_end, remote::Descriptor own_read_end,
            remote::Descriptor write_end);
  void set(bool events);

  const std::shared_ptr<kmd::EventChannel> channel_;
  const remote::Descriptor read_end_;
  /// Of the same pipe: the process can change nothing of how this one is read.
  const remote::Descriptor own_read_end_;
  const remote::Descriptor write_end_;
  bool readable_ = false;
};

}  // namespace rnic::testbench
