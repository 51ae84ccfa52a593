#include "driver/kmd/local_node.hpp"

#include <fcntl.h>

namespace rnic::kmd {

Result<std::unique_ptr<KernelPort>> LocalNode::open() {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelPort>> {
    if (auto well = kernel_.recover(); !well) return well.error();
    auto client = Client::create(kernel_, trusted_);
    if (!client) return client.error();
    return std::unique_ptr<KernelPort>(std::make_unique<LocalPort>(kernel_, client.take()));
  });
}

void LocalPort::call(std::span<const std::byte> request, std::span<std::byte> answer) {
  client_->call(request, answer);
}

Result<int> LocalPort::descriptor(calls::Handle channel) {
  return or_out_of_memory([&]() -> Result<int> {
    auto events = client_->channel(channel);
    if (events == nullptr) return Error::kNotFound;
    const std::lock_guard lock(descriptors_mutex_);
    std::erase_if(descriptors_, [&](const auto& old) { return client_->channel(old.first) == nullptr; });
    auto& known = descriptors_[channel];
    if (known == nullptr) {
      auto opened = EventDescriptor::open(std::move(events));
      if (!opened) return opened.error();
      known = opened.take();
    }
    const int own = fcntl(known->descriptor(), F_DUPFD_CLOEXEC, 0);
    return own < 0 ? Result<int>(Error::kOutOfResources) : own;
  });
}

}  // namespace rnic::kmd
