#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver/ndk/completion_queue.hpp"
#include "driver/ndk/protection_domain.hpp"
#include "driver/umd/memory_request.hpp"
#include "driver/umd/queue_pair.hpp"

namespace rnic::ndk {

class Connector;
class MemoryRegion;
class SharedReceiveQueue;

/// NDK_QP.
class QueuePair final : public ObjectOf<NDK_QP, QueuePair> {
 public:
  /// NDK_FN_CREATE_QP, NDK_FN_CREATE_QP_WITH_SRQ.
  static NTSTATUS create(NDK_PD* pd, NDK_CQ* receive_cq, NDK_CQ* initiator_cq, PVOID qp_context, ULONG receive_depth,
                         ULONG initiator_depth, ULONG receive_sge, ULONG initiator_sge, ULONG inline_bytes,
                         NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP** qp);
  static NTSTATUS create_with_srq(NDK_PD* pd, NDK_CQ* receive_cq, NDK_CQ* initiator_cq, NDK_SRQ* srq, PVOID qp_context,
                                  ULONG initiator_depth, ULONG initiator_sge, ULONG inline_bytes,
                                  NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP** qp);

  /// Whoever makes connections moves its state.
  [[nodiscard]] const std::shared_ptr<umd::QueuePair>& core() const { return core_; }
  [[nodiscard]] Adapter& adapter() const { return pd_.adapter(); }
  /// Its receives are shared: its peer's patience without them has no limit (decisions 13).
  [[nodiscard]] bool has_srq() const { return srq_ != nullptr; }
  /// Who has its connection; null: nobody. On the worker.
  void attach(Connector* connector) { connector_ = connector; }
  /// Its connection has been ended by its consumer: requests are not taken any more (decisions 8).
  void refuse_requests() { disconnected_ = true; }

 private:
  struct Spec {
    ProtectionDomain* pd{};
    CompletionQueue* receive_cq{};
    CompletionQueue* initiator_cq{};
    SharedReceiveQueue* srq{};
    PVOID context{};
    umd::QueueCapacity capacity{};
  };
  struct Operation {
    hw::WqeOpcode opcode{};
    ULONG known_flags{};
    UINT64 remote_address{};
    UINT32 remote_token{};
    std::uint32_t immediate{};
  };

  QueuePair(const Spec& spec, std::shared_ptr<umd::QueuePair> core, std::shared_ptr<QpRecord> record);
  static NTSTATUS create(const Spec& spec, NDK_FN_CREATE_COMPLETION completion, PVOID context);
  static NTSTATUS make(const Spec& spec, NDK_OBJECT_HEADER*& header);

  static VOID flush(NDK_QP* qp);
  static NTSTATUS send(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, ULONG flags);
  static NTSTATUS send_and_invalidate(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, ULONG flags,
                                      UINT32 remote_token);
  static NTSTATUS receive(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count);
  static NTSTATUS read(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, UINT64 remote_address,
                       UINT32 remote_token, ULONG flags);
  static NTSTATUS write(NDK_QP* qp, PVOID context, const NDK_SGE* sgl, ULONG count, UINT64 remote_address,
                        UINT32 remote_token, ULONG flags);
  static NTSTATUS bind(NDK_QP* qp, PVOID context, NDK_MR* mr, NDK_MW* mw, const void* address, SIZE_T length,
                       ULONG flags);
  static NTSTATUS fast_register(NDK_QP* qp, PVOID context, NDK_MR* mr, ULONG page_count,
                                const NDK_LOGICAL_ADDRESS* pages, ULONG fbo, SIZE_T length, PVOID base, ULONG flags);
  static NTSTATUS invalidate(NDK_QP* qp, PVOID context, NDK_OBJECT_HEADER* object, ULONG flags);
  static const NDK_QP_DISPATCH kDispatch;

  [[nodiscard]] bool connected() const;
  NTSTATUS post(const Operation& operation, PVOID context, const NDK_SGE* sgl, ULONG count, ULONG flags);
  NTSTATUS post_read_invalidate(const umd::SendRequest& read, ULONG flags, const NDK_SGE& sink);
  /// What an initiator post returns: a failure rings for what was deferred (NDKPI Deferred Processing Scheme).
  NTSTATUS finish(const Result<void>& posted);
  NTSTATUS refuse(NTSTATUS status);
  void end() override;

  ProtectionDomain& pd_;
  CompletionQueue& receive_cq_;
  CompletionQueue& initiator_cq_;
  SharedReceiveQueue* const srq_;
  const std::shared_ptr<umd::QueuePair> core_;
  const std::shared_ptr<QpRecord> record_;
  Errand flush_;
  Errand failed_;
  Connector* connector_{};  ///< The worker's
  std::atomic<bool> disconnected_{};
};

}  // namespace rnic::ndk
