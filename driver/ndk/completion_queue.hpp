#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "driver/ndk/adapter.hpp"
#include "driver/ndk/errand.hpp"
#include "driver/umd/completion_queue.hpp"

namespace rnic::ndk {

/// What a completion finds of its queue pair, whether that is still there or not.
struct QpRecord {
  PVOID context{};
  bool read_failed{};  ///< The newest completion of its initiator queue was a Read that failed
  SpinLock lock;
  Errand* failed{};  ///< Asked for when one of its requests has failed; null: nobody is interested any more
};

/// NDK_CQ. The arm is the device's, which knows which entries are newer than the last notification (decisions 27); two
/// arms are merged by the documented table: ANY over SOLICITED over ERRORS.
class CompletionQueue final : public ObjectOf<NDK_CQ, CompletionQueue> {
 public:
  /// NDK_FN_CREATE_CQ.
  static NTSTATUS create(NDK_ADAPTER* adapter, ULONG depth, NDK_FN_CQ_NOTIFICATION_CALLBACK notification,
                         PVOID notification_context, GROUP_AFFINITY* affinity, NDK_FN_CREATE_COMPLETION completion,
                         PVOID context, NDK_CQ** cq);

  [[nodiscard]] const std::shared_ptr<umd::CompletionQueue>& core() const { return core_; }
  [[nodiscard]] Adapter& adapter() const { return adapter_; }
  /// Its queue pair has ended; entries that wait here may still name it. On the worker. Throws std::bad_alloc.
  void keep(std::shared_ptr<QpRecord> record);

 private:
  CompletionQueue(Adapter& adapter, std::shared_ptr<umd::CompletionQueue> core,
                  NDK_FN_CQ_NOTIFICATION_CALLBACK notification, PVOID context);
  static NTSTATUS resize(NDK_CQ* cq, ULONG depth, NDK_FN_REQUEST_COMPLETION completion, PVOID context);
  static VOID arm(NDK_CQ* cq, ULONG type);
  template <typename Result>
  static ULONG get_results(NDK_CQ* cq, Result results[], ULONG count);
  template <typename Result>
  bool put(const umd::Completion& completion, Result& result);
  static NTSTATUS moderate(NDK_CQ* cq, ULONG interval_us, ULONG count);
  static const NDK_CQ_DISPATCH kDispatch;

  void take_event(const hw::Eqe& eqe);
  void fire();
  void notify();
  void end() override;

  Adapter& adapter_;
  const std::shared_ptr<umd::CompletionQueue> core_;
  const NDK_FN_CQ_NOTIFICATION_CALLBACK notification_;
  PVOID const notification_context_;
  Errand notify_;
  Errand moderate_;
  std::shared_ptr<Listening> events_;
  SpinLock lock_;  ///< Guards the following
  hw::CqArm armed_ = hw::CqArm::kNone;
  bool unclaimed_event_{};           ///< An event that came for an arm that another one had satisfied
  NTSTATUS state_ = STATUS_SUCCESS;  ///< What notifications say: also that nothing more will come
  unsigned fires_{};                 ///< Notifications that are due
  std::uint16_t moderation_count_{};
  std::uint16_t moderation_interval_{};
  std::vector<std::shared_ptr<QpRecord>> kept_;
};

}  // namespace rnic::ndk
