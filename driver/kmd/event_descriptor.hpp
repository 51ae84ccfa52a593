#pragma once

#include <memory>

#include "driver/kmd/event_channel.hpp"

namespace rnic::kmd {

/// A descriptor of Linux (eventfd) that poll finds readable as long as events wait in a channel. Nobody reads it.
class EventDescriptor {
 public:
  /// Errors: kOutOfResources (no descriptor is free).
  static Result<std::unique_ptr<EventDescriptor>> open(std::shared_ptr<EventChannel> channel);
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;
  ~EventDescriptor();

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  EventDescriptor(std::shared_ptr<EventChannel> channel, int descriptor);

  const std::shared_ptr<EventChannel> channel_;
  const int descriptor_;
};

}  // namespace rnic::kmd
