#pragma once

#include <memory>

#include "driver/umd/kernel_object.hpp"

namespace rnic::umd {

/// An endpoint of the connection manager (docs/connection_manager.md). Its events are those of the client's first
/// channel, handed out as EventTable::Of::kEndpoint by its handle.
class KernelEndpoint final : public KernelObject {
 public:
  static constexpr std::uint16_t kConnections = 0x0106;  ///< Port space

  /// For connections. Errors: those of the call.
  static Result<std::unique_ptr<KernelEndpoint>> create(ProcessContext& context) {
    return make<KernelEndpoint>(context, calls::CreateEndpoint{.port_space = kConnections});
  }
  /// One that came to a listener, and is the owner's from now on. Throws std::bad_alloc, and has then given it back.
  static std::unique_ptr<KernelEndpoint> adopt(ProcessContext& context, calls::Handle handle) {
    try {
      std::unique_ptr<KernelEndpoint> endpoint(new KernelEndpoint(context.shared_from_this()));
      endpoint->is(handle);
      return endpoint;
    } catch (const std::bad_alloc&) {
      refuse(context, handle);
      throw;
    }
  }
  /// Gives one back that came to a listener and that nobody wants: its peer is told.
  static void refuse(ProcessContext& context, calls::Handle handle) {
    static_cast<void>(
        context.call(calls::Destroy{.object = handle, .kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint)})
            .ok());
  }

 private:
  friend class KernelObject;
  explicit KernelEndpoint(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kEndpoint) {}
  Result<void> begin(const calls::CreateEndpoint&, const calls::CreateEndpoint::Answer& answer) {
    is(answer.endpoint);
    return {};
  }
};

}  // namespace rnic::umd
