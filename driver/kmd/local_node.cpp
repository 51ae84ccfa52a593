#include "driver/kmd/local_node.hpp"

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

}  // namespace rnic::kmd
