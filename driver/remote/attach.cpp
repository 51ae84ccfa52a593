#include "driver/remote/attach.hpp"

#include "driver/remote/remote_port.hpp"
#include "driver/remote/status.hpp"

namespace rnic::remote {
namespace {

class RemoteNode final : public DeviceNode {
 public:
  explicit RemoteNode(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)), machine_(std::make_shared<RemoteMachine>(connection_)) {}

  [[nodiscard]] Result<std::unique_ptr<KernelPort>> open() override {
    return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelPort>> {
      const auto opened = connection_->request(FrameKind::kOpen, 0, {}, {});
      if (opened.status != calls::Status::kSuccess) return error_of(opened.status);
      return std::unique_ptr<KernelPort>(std::make_unique<RemotePort>(connection_, machine_, opened.client));
    });
  }
  [[nodiscard]] Machine& machine() override { return *machine_; }
  [[nodiscard]] EventTakers& takers() override { return takers_; }

 private:
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<RemoteMachine> machine_;
  EventTakers takers_;
};

}  // namespace

Result<std::shared_ptr<DeviceNode>> attach(const std::string& socket) {
  auto connection = Connection::open(socket);
  if (!connection) return connection.error();
  return or_out_of_memory([&]() -> Result<std::shared_ptr<DeviceNode>> {
    return std::shared_ptr<DeviceNode>(std::make_shared<RemoteNode>(connection.take()));
  });
}

}  // namespace rnic::remote
