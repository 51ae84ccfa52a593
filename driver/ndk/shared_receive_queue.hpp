#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver/ndk/errand.hpp"
#include "driver/ndk/protection_domain.hpp"
#include "driver/umd/shared_receive_queue.hpp"

namespace rnic::ndk {

/// NDK_SRQ.
class SharedReceiveQueue final : public ObjectOf<NDK_SRQ, SharedReceiveQueue> {
 public:
  /// NDK_FN_CREATE_SRQ.
  static NTSTATUS create(NDK_PD* pd, ULONG depth, ULONG sge, ULONG threshold,
                         NDK_FN_SRQ_NOTIFICATION_CALLBACK notification, PVOID notification_context,
                         GROUP_AFFINITY* affinity, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_SRQ** srq);

  [[nodiscard]] const std::shared_ptr<umd::SharedReceiveQueue>& core() const { return core_; }

 private:
  struct Spec {
    ULONG depth{};
    ULONG sge{};
    ULONG threshold{};
    NDK_FN_SRQ_NOTIFICATION_CALLBACK notification{};
    PVOID context{};
  };

  SharedReceiveQueue(ProtectionDomain& pd, std::shared_ptr<umd::SharedReceiveQueue> core, const Spec& spec);
  static NTSTATUS modify(NDK_SRQ* srq, ULONG depth, ULONG threshold, NDK_FN_REQUEST_COMPLETION completion,
                         PVOID context);
  static NTSTATUS receive(NDK_SRQ* srq, PVOID context, const NDK_SGE* sgl, ULONG count);
  static const NDK_SRQ_DISPATCH kDispatch;
  void end() override;

  ProtectionDomain& pd_;
  const std::shared_ptr<umd::SharedReceiveQueue> core_;
  const NDK_FN_SRQ_NOTIFICATION_CALLBACK notification_;
  PVOID const notification_context_;
  /// Of the creation: a queue that was never filled has not fallen below it, so it is armed when it has been; 0: not
  /// any more.
  std::atomic<ULONG> first_threshold_;
  std::atomic<NTSTATUS> state_{STATUS_SUCCESS};
  Errand arm_;
  Errand notify_;
  std::shared_ptr<Listening> events_;
};

}  // namespace rnic::ndk
