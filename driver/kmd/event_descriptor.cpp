#include "driver/kmd/event_descriptor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace rnic::kmd {

Result<std::unique_ptr<EventDescriptor>> EventDescriptor::open(std::shared_ptr<EventChannel> channel) {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) return Error::kOutOfResources;
  return std::unique_ptr<EventDescriptor>(new EventDescriptor(std::move(channel), descriptor));
}

EventDescriptor::EventDescriptor(std::shared_ptr<EventChannel> channel, int descriptor)
    : channel_(std::move(channel)), descriptor_(descriptor) {
  channel_->listen([descriptor](bool events) {
    eventfd_t count{};
    static_cast<void>(events ? eventfd_write(descriptor, 1) : eventfd_read(descriptor, &count));
  });
}

EventDescriptor::~EventDescriptor() {
  channel_->listen({});
  close(descriptor_);
}

}  // namespace rnic::kmd
