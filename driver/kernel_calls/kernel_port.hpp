#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "driver/generated/kernel_calls.hpp"
#include "driver/kernel_calls/event_takers.hpp"
#include "driver/machine.hpp"

namespace rnic {

/// One client's way to the kernel driver (docs/kernel_calls.md). The client goes with its port. Thread safe.
class KernelPort {
 public:
  KernelPort() = default;
  KernelPort(const KernelPort&) = delete;
  KernelPort& operator=(const KernelPort&) = delete;
  virtual ~KernelPort() = default;

  /// Carries a message to the kernel driver and brings the answer, of which at least the header is there. Lets time
  /// pass, as the call says.
  virtual void call(std::span<const std::byte> request, std::span<std::byte> answer) = 0;

  /// A piece of memory that the kernel driver shares with the process, there for as long as the pointer is kept. What
  /// the object does whose it is comes to an end with the object. Errors: kAccessViolation (it is not the client's, or
  /// the object is gone).
  [[nodiscard]] virtual Result<std::shared_ptr<std::uint8_t>> map(const calls::MemoryRange& range) = 0;

  /// A descriptor that poll finds readable as long as events wait in this channel of the client, and when its kernel
  /// driver has gone. It is there to be polled only: nobody reads it. The caller closes it; others of the same channel
  /// are independent of it. Errors: kNotFound (no such channel), kOutOfResources (no descriptor is free),
  /// kDeviceFailed (the kernel driver has gone).
  [[nodiscard]] virtual Result<int> descriptor(calls::Handle channel) = 0;

  [[nodiscard]] virtual Machine& machine() = 0;

  /// A call without an array. Errors: those of the call.
  template <typename Request>
  [[nodiscard]] Result<typename Request::Answer> call(Request request) {
    static_assert(Request::kMostWords == 0);
    request.header = {.size = sizeof request, .version = calls::kVersion, .call = Request::kCall};
    return answer_to<Request>(std::as_bytes(std::span(&request, 1)));
  }
  /// A message that is there as a whole.
  template <typename Request>
  [[nodiscard]] Result<typename Request::Answer> answer_to(std::span<const std::byte> message) {
    typename Request::Answer answer;
    answer.header.status = calls::Status::kDeviceFailed;
    call(message, std::as_writable_bytes(std::span(&answer, 1)));
    if (answer.header.status == calls::Status::kSuccess) return answer;
    return static_cast<Error>(static_cast<int>(answer.header.status) - 1);
  }
};

/// A device as a process finds it on its machine. Outlives its ports.
class DeviceNode {
 public:
  DeviceNode() = default;
  DeviceNode(const DeviceNode&) = delete;
  DeviceNode& operator=(const DeviceNode&) = delete;
  virtual ~DeviceNode() = default;

  /// Makes a client. A device that has failed is brought up again first. Errors: kOutOfMemory, those of the bring-up.
  [[nodiscard]] virtual Result<std::unique_ptr<KernelPort>> open() = 0;
  [[nodiscard]] virtual Machine& machine() = 0;
  /// Those of this process.
  [[nodiscard]] virtual EventTakers& takers() = 0;
};

}  // namespace rnic
